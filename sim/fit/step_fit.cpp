// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/step_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/core/text.h"
#include "sim/fit/log_fit.h"
#include "sim/spec/builtin_documents.h"
#include "sim/validate/functional_case.h"

namespace meshwright {
namespace {

struct FittedEntry {
  size_t set = 0, entry = 0;
};

/// What physics allows: no kernel beats its peak, and none of these terms is a free factor.
FitParameter bounds_of(const StepConstantSet& set, const StepConstantSet::Entry& e) {
  struct Bound {
    std::string_view ending;
    double low, high;
  };
  constexpr Bound kBounds[] = {
      {"flash_forward", 0.15, 0.80},     {"_fraction", 0.20, 0.87},
      {"fp8_fraction", 0.30, 0.76},      {"fp4_fraction", 0.20, 0.70},
      {"_efficiency", 0.02, 1.00},       {"_exposed", 0.02, 1.00},
      {"elementwise", 0.50, 2.00},       {"elementwise_compiled", 0.30, 2.00},
      {"cast_traffic", 0.30, 4.00},      {"score_traffic", 0.30, 1.50},
      {"loss_bytes_per_logit", 10, 120}, {"moe_gemm", 0.60, 1.00},
      {"mamba_traffic", 0.50, 5.00},     {"moe_traffic", 0.50, 12.00},
      {"fsdp_interference", 0.05, 1.00}, {"host_norm", 2, 10},
      {"host_layer_s", 2e-5, 4e-3},      {"host_moe_s", 2e-5, 3e-3},
      {"host_collective_s", 1e-6, 2e-4}, {"collective_alpha_s", 5e-6, 2e-4},
      {"kernel_gap_s", 1e-6, 1e-4}};
  FitParameter p{
      .name = set.name + "/" + e.key, .start = e.value, .low = e.value / 10, .high = e.value * 10};
  for (const Bound& bound : kBounds) {
    if (!e.key.ends_with(bound.ending)) continue;
    p.low = bound.low;
    p.high = bound.high;
  }
  return p;
}

std::vector<double> crowd_weights(const std::vector<TrainingCase>& cases) {
  std::map<std::string, int> crowd;
  const auto key = [](const TrainingCase& c) { return c.source + c.model + c.device; };
  for (const TrainingCase& c : cases) ++crowd[key(c)];
  std::vector<double> weights;
  for (const TrainingCase& c : cases) weights.push_back(std::pow(crowd[key(c)], -0.15));
  return weights;
}

}  // namespace

TrainingCase step_case(const CsvTable& table, size_t row) {
  return table.has_column("case") ? functional_case(table, row) : training_case(table, row);
}

Result<StepFitReport> fit_step_constants(const std::vector<const CsvTable*>& tables,
                                         const std::function<bool(const TrainingCase&)>& use) {
  MW_ASSIGN_OR_RETURN(StepConstants constants, StepConstants::builtin());
  std::vector<TrainingCase> cases;
  for (const CsvTable* table : tables) {
    for (size_t i = 0; i < table->num_rows(); ++i) {
      TrainingCase c = step_case(*table, i);
      if (c.skipped.empty() && (!use || use(c))) cases.push_back(std::move(c));
    }
  }
  if (cases.empty()) {
    return Error{.where = "fit", .rule = "no row of the tables can be predicted"};
  }
  std::vector<FittedEntry> fitted;
  std::vector<FitParameter> parameters;
  for (size_t s = 0; s < constants.sets().size(); ++s) {
    const StepConstantSet& set = constants.sets()[s];
    for (size_t e = 0; e < set.entries.size(); ++e) {
      if (!set.entries[e].fitted) continue;
      fitted.push_back({s, e});
      parameters.push_back(bounds_of(set, set.entries[e]));
    }
  }
  const std::vector<double> weights = crowd_weights(cases);
  const auto write = [&](std::span<const double> values) {
    for (size_t i = 0; i < fitted.size(); ++i) {
      constants.sets()[fitted[i].set].entries[fitted[i].entry].value = values[i];
    }
  };
  const FitResult result = fit_log(
      parameters, cases.size(), [&](std::span<const double> values, std::span<double> residuals) {
        write(values);
        for (size_t i = 0; i < cases.size(); ++i) {
          residuals[i] = weights[i] * std::log(predict_case(cases[i], constants).total_s() /
                                               *cases[i].measured_s);
        }
      });
  write(result.values);
  StepFitReport report{.num_rows = cases.size()};
  for (size_t i = 0; i < parameters.size(); ++i) {
    report.lines.push_back(fmt::format("{} {:.4g} +- {:.0f} %",
                                       parameters[i].name,
                                       result.values[i],
                                       100 * result.relative_error[i]));
  }
  report.constants = std::move(constants);
  return report;
}

Result<std::string> fit_steps(const std::vector<const CsvTable*>& tables) {
  MW_ASSIGN_OR_RETURN(const StepFitReport report, fit_step_constants(tables));
  const std::optional<std::string_view> text = builtin_document("fits", "frameworks");
  MW_CHECK(text.has_value());
  nlohmann::ordered_json document = nlohmann::ordered_json::parse(*text);
  for (size_t s = 0; s < report.constants.sets().size(); ++s) {
    for (const StepConstantSet::Entry& e : report.constants.sets()[s].entries) {
      if (e.fitted) document["sets"][s]["values"][e.key] = four_digits(e.value);
    }
  }
  return document.dump(1) + "\n";
}

}  // namespace meshwright
