// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/log_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/core/check.h"

namespace meshwright {
namespace {

constexpr double kDifferenceStep = 1e-4;  // in log space: 0.01 %

class FitProblem {
 public:
  FitProblem(const std::vector<FitParameter>& parameters,
             size_t n,
             const Residuals& residuals,
             double scale)
      : parameters_(parameters),
        residuals_(residuals),
        scale_(scale),
        values_(parameters.size()),
        n_(n) {}

  Eigen::VectorXd evaluate(const Eigen::VectorXd& theta) {
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = std::exp(theta(index(i)));
    Eigen::VectorXd r(static_cast<Eigen::Index>(n_));
    residuals_(values_, std::span<double>(r.data(), n_));
    // A prediction that is not a number is infinitely wrong; a large residual keeps the step away.
    for (Eigen::Index i = 0; i < r.size(); ++i) {
      if (!std::isfinite(r(i))) r(i) = 10.0;
    }
    return r;
  }

  [[nodiscard]] double cost(const Eigen::VectorXd& r) const {
    double sum = 0;
    for (const double x : r) sum += 2 * scale_ * scale_ * (std::hypot(1.0, x / scale_) - 1);
    return sum / static_cast<double>(n_);
  }

  Eigen::MatrixXd jacobian(const Eigen::VectorXd& theta, const Eigen::VectorXd& r) {
    Eigen::MatrixXd j(r.size(), theta.size());
    for (Eigen::Index i = 0; i < theta.size(); ++i) {
      Eigen::VectorXd moved = theta;
      const bool at_top = theta(i) + kDifferenceStep > std::log(parameter(i).high);
      const double step = at_top ? -kDifferenceStep : kDifferenceStep;
      moved(i) += step;
      j.col(i) = (evaluate(moved) - r) / step;
    }
    return j;
  }

  [[nodiscard]] Eigen::VectorXd weights(const Eigen::VectorXd& r) const {
    return r.unaryExpr([this](double x) { return 1.0 / std::hypot(1.0, x / scale_); });
  }

  [[nodiscard]] Eigen::VectorXd clamped(Eigen::VectorXd theta) const {
    for (Eigen::Index i = 0; i < theta.size(); ++i) {
      theta(i) = std::clamp(theta(i), std::log(parameter(i).low), std::log(parameter(i).high));
    }
    return theta;
  }

  [[nodiscard]] const FitParameter& parameter(Eigen::Index i) const {
    return parameters_[static_cast<size_t>(i)];
  }
  static Eigen::Index index(size_t i) { return static_cast<Eigen::Index>(i); }

 private:
  const std::vector<FitParameter>& parameters_;
  const Residuals& residuals_;
  double scale_;
  std::vector<double> values_;
  size_t n_;
};

/// Solves the damped normal equations over the constants that are not pressed against a bound.
Eigen::VectorXd damped_step(const FitProblem& p,
                            const Eigen::VectorXd& theta,
                            const Eigen::MatrixXd& normal,
                            const Eigen::VectorXd& gradient,
                            double damping) {
  Eigen::MatrixXd a = normal;
  Eigen::VectorXd g = gradient;
  for (Eigen::Index i = 0; i < theta.size(); ++i) {
    const bool pressed_low = theta(i) <= std::log(p.parameter(i).low) && g(i) > 0;
    const bool pressed_high = theta(i) >= std::log(p.parameter(i).high) && g(i) < 0;
    a(i, i) += damping * std::max(normal(i, i), 1e-12);
    if (!pressed_low && !pressed_high) continue;
    a.row(i).setZero();
    a.col(i).setZero();
    a(i, i) = 1;
    g(i) = 0;
  }
  return -a.ldlt().solve(g);
}

}  // namespace

FitResult fit_log(const std::vector<FitParameter>& parameters,
                  size_t num_residuals,
                  const Residuals& residuals,
                  const FitOptions& options) {
  MW_CHECK(num_residuals > 0 && !parameters.empty());
  FitProblem p(parameters, num_residuals, residuals, options.scale);
  Eigen::VectorXd theta(FitProblem::index(parameters.size()));
  for (size_t i = 0; i < parameters.size(); ++i) {
    MW_CHECK(parameters[i].low > 0 && parameters[i].low <= parameters[i].high);
    theta(FitProblem::index(i)) = std::log(parameters[i].start);
  }
  theta = p.clamped(theta);

  FitResult result;
  Eigen::VectorXd r = p.evaluate(theta);
  double cost = p.cost(r);
  double damping = 1e-2;
  Eigen::MatrixXd normal;
  while (result.iterations < options.max_iterations) {
    ++result.iterations;
    const Eigen::MatrixXd j = p.jacobian(theta, r);
    const Eigen::VectorXd w = p.weights(r);
    normal = j.transpose() * w.asDiagonal() * j;
    const Eigen::VectorXd gradient = j.transpose() * (w.array() * r.array()).matrix();
    double decrease = 0;
    for (int attempt = 0; attempt < 10; ++attempt) {
      const Eigen::VectorXd candidate =
          p.clamped(theta + damped_step(p, theta, normal, gradient, damping));
      const Eigen::VectorXd candidate_r = p.evaluate(candidate);
      const double candidate_cost = p.cost(candidate_r);
      if (candidate_cost < cost) {
        decrease = (cost - candidate_cost) / cost;
        theta = candidate;
        r = candidate_r;
        cost = candidate_cost;
        damping = std::max(damping / 5, 1e-9);
        break;
      }
      damping *= 4;
    }
    if (decrease < options.tolerance) break;
  }

  result.cost = cost;
  const double variance = r.squaredNorm() / static_cast<double>(num_residuals);
  const Eigen::MatrixXd covariance =
      variance *
      (normal + 1e-12 * Eigen::MatrixXd::Identity(normal.rows(), normal.cols())).inverse();
  for (Eigen::Index i = 0; i < theta.size(); ++i) {
    result.values.push_back(std::exp(theta(i)));
    const double v = covariance(i, i);
    result.relative_error.push_back(v > 0 ? std::sqrt(v) : std::numeric_limits<double>::infinity());
  }
  return result;
}

}  // namespace meshwright
