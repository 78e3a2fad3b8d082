// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/link_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "sim/fit/log_fit.h"

namespace meshwright {
namespace {

constexpr LinkClass kLinkClasses[] = {{"nvlink3", 300, true, 0},
                                      {"nvlink4", 450, true, 16},
                                      {"nvlink5", 900, true, 24},
                                      {"pcie5", 63, false, 0}};

/// About six groups of 21 sizes: enough to fit every constant from scratch.
constexpr size_t kRowsForAllConstants = 120;

/// Pull towards the start: a factor of e costs as much as one row that is 20 % off. It fixes what a
/// handful of groups leaves open, and hardly moves what they determine.
constexpr double kPriorWeight = 0.2;

/// A constant of the fit and the member it sets.
struct LinkParameter {
  FitParameter fit;
  double& (*member)(LinkConstants&);
};

using Link = LinkConstants;

std::vector<LinkParameter> link_parameters(const LinkClass& k, bool with_nvls) {
  const double line = k.line_rate_GBps;
  std::vector<LinkParameter> p = {
      {{"base_us", 6, 1, 30}, [](Link& c) -> double& { return c.base_us; }},
      {{"ll.hop_us", 1, .05, 10}, [](Link& c) -> double& { return c.ll.hop_us; }},
      {{"ll.rate_GBps", 13, 1, 200}, [](Link& c) -> double& { return c.ll.rate_GBps; }},
      {{"simple.base_us", 8, .1, 60}, [](Link& c) -> double& { return c.simple.base_us; }},
      {{"simple.hop_us", 5, .1, 30}, [](Link& c) -> double& { return c.simple.hop_us; }},
      {{"simple.rate_GBps", .8 * line, .1 * line, line},
       [](Link& c) -> double& { return c.simple.rate_GBps; }},
      {{"simple_overlap", 1.3, 1, 6}, [](Link& c) -> double& { return c.simple_overlap; }},
      {{"local_copy", .5, .01, 1.5}, [](Link& c) -> double& { return c.local_copy; }},
      {{"all_to_all.base_us", 8, 1, 30}, [](Link& c) -> double& { return c.all_to_all.base_us; }},
      {{"all_to_all.peer_us", .2, .01, 3}, [](Link& c) -> double& { return c.all_to_all.peer_us; }},
      {{"all_to_all.ll_rate_GBps", 15, 1, 300},
       [](Link& c) -> double& { return c.all_to_all.ll_rate_GBps; }},
      {{"all_to_all.simple_rate_GBps", .6 * line, .1 * line, line},
       [](Link& c) -> double& { return c.all_to_all.simple_rate_GBps; }},
      {{"all_to_all.local_copy", .3, .01, 1.5},
       [](Link& c) -> double& { return c.all_to_all.local_copy; }}};
  if (k.nvlink) {
    p.push_back(
        {{"ll128.base_us", 1, .01, 20}, [](Link& c) -> double& { return c.ll128.base_us; }});
    p.push_back({{"ll128.hop_us", 1, .1, 20}, [](Link& c) -> double& { return c.ll128.hop_us; }});
    p.push_back({{"ll128.rate_GBps", .35 * line, .05 * line, line},
                 [](Link& c) -> double& { return c.ll128.rate_GBps; }});
  } else {
    // NCCL keeps LL128 to NVLink; two ranks below one root complex are faster than more.
    p.push_back({{"pair_rate_GBps", .5 * line, .1 * line, line},
                 [](Link& c) -> double& { return c.pair_rate_GBps; }});
  }
  if (with_nvls) {
    p.push_back({{"nvls.loop_us", 5, .1, 60}, [](Link& c) -> double& { return c.nvls.loop_us; }});
    p.push_back({{"nvls.rate_GBps", .65 * line, .2 * line, 2 * line},
                 [](Link& c) -> double& { return c.nvls.rate_GBps; }});
  }
  return p;
}

bool uses_nvls(const CollectiveRow& r, const NcclConstants& nccl) {
  return r.op == CommOp::kAllReduce && r.group.nvls && r.group.num_ranks >= nccl.nvls_min_ranks &&
         r.bytes >= nccl.nvls_min_bytes;
}

/// Rows of one generation inside a node that the fit may use.
CollectiveRowRefs usable_link_rows(const std::vector<CollectiveRow>& all,
                                   const LinkClass& k,
                                   const NcclConstants& nccl) {
  CollectiveRowRefs rows, host_timed;
  bool nvls_seen = false;
  for (const CollectiveRow& r : all) {
    if (!r.skipped.empty() || r.marked || r.time_us <= 0 || r.link != k.generation ||
        !r.network.empty() || r.op == CommOp::kSendRecv || r.group.line_rate_GBps > 0) {
      continue;
    }
    const bool nvls = k.nvls_channels > 0 && uses_nvls(r, nccl);
    if (r.kernel_timed) {
      rows.push_back(&r);
      nvls_seen = nvls_seen || nvls;
    } else if (nvls) {
      host_timed.push_back(&r);
    }
  }
  if (!nvls_seen && !rows.empty()) rows.insert(rows.end(), host_timed.begin(), host_timed.end());
  return rows;
}

struct LinkFit {
  LinkConstants constants;
  double cost = std::numeric_limits<double>::infinity();
  std::map<std::string, double> relative_errors;
};

LinkFit fit_link(const LinkClass& k,
                 const NcclConstants& nccl,
                 const LinkConstants* known,
                 const CollectiveRowRefs& rows,
                 double switch_bytes) {
  const bool with_nvls = k.nvls_channels > 0 && std::any_of(rows.begin(), rows.end(), [&](auto* r) {
                           return uses_nvls(*r, nccl);
                         });
  const bool with_host =
      std::any_of(rows.begin(), rows.end(), [](auto* r) { return !r->kernel_timed; });
  const std::vector<LinkParameter> parameters = link_parameters(k, with_nvls);
  std::vector<FitParameter> fitted;
  LinkConstants base{.generation = k.generation,
                     .line_rate_GBps = k.line_rate_GBps,
                     .ll128_max_chunk_bytes = switch_bytes};
  if (known != nullptr) base = *known;
  base.ll128_max_chunk_bytes = switch_bytes;
  if (with_nvls) base.nvls.channels = k.nvls_channels;
  for (const LinkParameter& p : parameters) {
    fitted.push_back(p.fit);
    if (const double value = p.member(base); value > 0) fitted.back().start = value;
  }
  if (with_host) fitted.push_back({"host_us", 15, 1, 100});

  const auto constants_of = [&](std::span<const double> values) {
    LinkConstants c = base;
    for (size_t i = 0; i < parameters.size(); ++i) parameters[i].member(c) = values[i];
    return c;
  };
  const FitResult result =
      fit_log(fitted,
              rows.size() + parameters.size(),
              [&](std::span<const double> values, std::span<double> residuals) {
                const LinkConstants c = constants_of(values);
                for (size_t i = 0; i < rows.size(); ++i) {
                  const CollectiveRow& r = *rows[i];
                  const double host = r.kernel_timed ? 0.0 : values.back();
                  const double t =
                      domain_time_us(nccl, c, r.op, r.bytes, {r.group.num_ranks, 0, r.group.nvls});
                  residuals[i] = std::log((t + host) / r.time_us);
                }
                for (size_t i = 0; i < parameters.size(); ++i) {
                  residuals[rows.size() + i] = kPriorWeight * std::log(values[i] / fitted[i].start);
                }
              });
  LinkFit fit{.constants = constants_of(result.values), .cost = result.cost};
  for (size_t i = 0; i < fitted.size(); ++i) {
    fit.relative_errors[fitted[i].name] = result.relative_error[i];
  }
  return fit;
}

/// The best of NCCL's switch points that published runs show.
LinkFit fit_link_and_switch(const LinkClass& k,
                            const NcclConstants& nccl,
                            const LinkConstants* known,
                            const CollectiveRowRefs& rows) {
  if (!k.nvlink) return fit_link(k, nccl, known, rows, 0);
  if (known != nullptr) return fit_link(k, nccl, known, rows, known->ll128_max_chunk_bytes);
  LinkFit best;
  for (const double switch_bytes : {262144.0, 524288.0, 1048576.0}) {
    LinkFit fit = fit_link(k, nccl, nullptr, rows, switch_bytes);
    if (fit.cost < best.cost) best = std::move(fit);
  }
  return best;
}

std::vector<double> unseen_link_ratios(const LinkClass& k,
                                       const NcclConstants& nccl,
                                       const LinkConstants* known,
                                       const CollectiveRowRefs& rows,
                                       double switch_bytes) {
  std::vector<double> ratios;
  for (size_t fold = 0; fold < kCollectiveFolds; ++fold) {
    const auto [seen, unseen] = split_groups(rows, fold);
    if (seen.empty() || unseen.empty()) continue;
    const LinkConstants c = fit_link(k, nccl, known, seen, switch_bytes).constants;
    for (const CollectiveRow* r : unseen) {
      // Host-timed rows are there for NVLS alone and carry the host's time.
      if (!r->kernel_timed) continue;
      ratios.push_back(
          domain_time_us(nccl, c, r->op, r->bytes, {r->group.num_ranks, 0, r->group.nvls}) /
          r->time_us);
    }
  }
  return ratios;
}

}  // namespace

std::span<const LinkClass> link_classes() { return kLinkClasses; }

std::optional<FittedLink> fit_link_class(const LinkClass& k,
                                         const NcclConstants& nccl,
                                         const LinkConstants* known,
                                         const std::vector<CollectiveRow>& all) {
  const CollectiveRowRefs rows = usable_link_rows(all, k, nccl);
  if (rows.empty()) return std::nullopt;
  if (rows.size() >= kRowsForAllConstants) known = nullptr;
  LinkFit fit = fit_link_and_switch(k, nccl, known, rows);
  const std::vector<double> ratios =
      unseen_link_ratios(k, nccl, known, rows, fit.constants.ll128_max_chunk_bytes);
  std::tie(fit.constants.measured_low, fit.constants.measured_high) = measured_interval(ratios);
  return FittedLink{.constants = fit.constants,
                    .origin = {.origin = "fitted on measured collectives of the generation",
                               .fitted_on = described_groups(rows),
                               .held_out = held_out_accuracy(count_groups(rows), ratios),
                               .relative_errors = std::move(fit.relative_errors)},
                    .unseen = ratios};
}

}  // namespace meshwright
