// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/network_fit.h"

#include <cmath>
#include <tuple>

#include "sim/fit/log_fit.h"

namespace meshwright {
namespace {

/// InfiniBand NDR and HDR, AWS EFA and GCP's TCPXO, one NIC per device.
constexpr NetworkClass kNetworkClasses[] = {
    {"ib_ndr", 50, true}, {"ib_hdr", 25, true}, {"efa", 50, true}, {"tcpxo", 25, false}};

/// One hop of the Simple protocol over InfiniBand (NVIDIA/nccl src/graph/tuning.cc, NET ring).
constexpr double kSimpleHopUs = 14;
constexpr size_t kRowsForAll = 15;

/// A disturbed log is usable where one step or the links themselves decide.
constexpr double kQuietBelowBytes = 4096;
constexpr double kQuietAboveBytes = 4294967296;

CollectiveRowRefs usable_network_rows(const std::vector<CollectiveRow>& all,
                                      const NetworkClass& k,
                                      const CollectiveConstants& constants) {
  CollectiveRowRefs rows;
  for (const CollectiveRow& r : all) {
    const bool quiet = !r.marked || r.bytes <= kQuietBelowBytes || r.bytes >= kQuietAboveBytes;
    if (r.skipped.empty() && r.time_us > 0 && r.network == k.generation && quiet && !r.relabelled &&
        constants.link(r.link) != nullptr) {
      rows.push_back(&r);
    }
  }
  return rows;
}

NetworkConstants network_of(const NetworkClass& k, std::span<const double> values) {
  return {.generation = k.generation,
          .line_rate_GBps = k.line_rate_GBps,
          .efficiency = values[0],
          .ll_hop_us = values[1],
          .simple_hop_us = values[2],
          .fill_loops = values[3],
          .ll128 = k.ll128};
}

double network_row_us(const CollectiveConstants& constants,
                      const NetworkConstants& network,
                      const CollectiveRow& r) {
  return nodes_time_us(constants.nccl, *constants.link(r.link), network, r.op, r.bytes, r.group);
}

FitResult fit_network(const NetworkClass& k,
                      const CollectiveConstants& constants,
                      const CollectiveRowRefs& rows) {
  std::vector<FitParameter> parameters = {{"efficiency_ratio", .9, .3, 1},
                                          {"ll_hop_us", 8, 1, 200},
                                          {"simple_hop_us", kSimpleHopUs, 2, 200},
                                          {"fill_loops", 8, .1, 50}};
  if (rows.size() < kRowsForAll) {
    // One hop of small messages is all that they show; the rest stays nominal.
    for (FitParameter& p : parameters) {
      if (p.name != "ll_hop_us") p.low = p.high = p.start;
    }
  }
  return fit_log(
      parameters, rows.size(), [&](std::span<const double> values, std::span<double> residuals) {
        const NetworkConstants network = network_of(k, values);
        for (size_t i = 0; i < rows.size(); ++i) {
          residuals[i] = std::log(network_row_us(constants, network, *rows[i]) / rows[i]->time_us);
        }
      });
}

}  // namespace

std::span<const NetworkClass> network_classes() { return kNetworkClasses; }

std::optional<FittedNetwork> fit_network_class(const NetworkClass& k,
                                               const CollectiveConstants& constants,
                                               const std::vector<CollectiveRow>& all) {
  const CollectiveRowRefs rows = usable_network_rows(all, k, constants);
  if (rows.empty()) return std::nullopt;
  const FitResult result = fit_network(k, constants, rows);
  FittedNetwork fitted{.constants = network_of(k, result.values),
                       .origin = {.origin = "fitted on measured collectives over this network; the "
                                            "interval is that of the fit itself",
                                  .fitted_on = described_groups(rows)}};
  if (rows.size() < kRowsForAll) {
    fitted.origin.origin =
        "ll_hop_us fitted; efficiency and fill_loops nominal, simple_hop_us of "
        "NCCL's tuning.cc: too few rows to fit them";
  }
  std::vector<double> ratios;
  for (const CollectiveRow* r : rows) {
    ratios.push_back(network_row_us(constants, fitted.constants, *r) / r->time_us);
  }
  std::tie(fitted.constants.measured_low, fitted.constants.measured_high) =
      measured_interval(ratios);
  return fitted;
}

}  // namespace meshwright
