// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/collective_fit.h"

#include <algorithm>
#include <cmath>

#include "sim/fit/link_fit.h"
#include "sim/fit/log_fit.h"
#include "sim/fit/network_fit.h"
#include "sim/spec/builtin_documents.h"

namespace meshwright {
namespace {

/// Of all links. The exponent is the best of {1.3, 1.5, 1.7, 2} on held-out groups of the three
/// NVLink generations (flat: 0.3 % between them); the loops lie between those of separate fits to
/// Hopper (2.1) and Blackwell (1.6), and held-out groups do not tell 1.5 from 2.5.
constexpr NcclConstants kNcclConstants{.ll128_overlap = 1.5,
                                       .nvls_fill_loops = 1.7,
                                       .nvls_min_ranks = 6,
                                       .nvls_min_bytes = 4194304,
                                       .nvls_from_bytes = 2097152,
                                       .ll128_hop_over_ll = 4.0 / 2.7};

/// Replaces the set of its generation, or adds it.
template <class Set>
void put(std::vector<Set>& sets, Set set) {
  const auto at = std::find_if(
      sets.begin(), sets.end(), [&](const Set& s) { return s.generation == set.generation; });
  if (at == sets.end()) {
    sets.push_back(std::move(set));
  } else {
    *at = std::move(set);
  }
}

/// A class that no usable measurement covers, from one that is measured: the same latencies, rates
/// of its own line.
void derive_hdr(CollectiveConstants& c, std::map<std::string, FitOrigin>& origins) {
  if (origins.contains("ib_hdr") || !origins.contains("ib_ndr")) return;
  NetworkConstants hdr = *c.network("ib_ndr");
  hdr.generation = "ib_hdr";
  hdr.line_rate_GBps = 25;
  put(c.networks, hdr);
  origins["ib_hdr"] = {.origin = "not measured: ib_ndr at half its line rate"};
}

/// PCIe 4 has no trustworthy nccl-tests set: the latencies of PCIe 5, and one factor on its rates
/// from all-reduces of four A100 over PCIe (host-timed, so large messages only).
void derive_pcie4(CollectiveConstants& c,
                  std::map<std::string, FitOrigin>& origins,
                  const std::vector<CollectiveRow>& all) {
  constexpr double kLineRate = 31.5;  // 16 lanes of 16 GT/s, 128b/130b
  constexpr double kLargeBytes = 4194304;
  const LinkConstants* pcie5 = c.link("pcie5");
  if (pcie5 == nullptr) return;
  CollectiveRowRefs rows;
  for (const CollectiveRow& r : all) {
    if (r.skipped.empty() && !r.marked && r.time_us > 0 && r.link == "pcie4" && r.network.empty() &&
        r.bytes >= kLargeBytes) {
      rows.push_back(&r);
    }
  }
  if (rows.empty()) return;
  LinkConstants pcie4 = *pcie5;
  pcie4.generation = "pcie4";
  pcie4.pair_rate_GBps = 0;
  const FitResult result = fit_log(
      {{"rate_factor", 1, .2, 2}},
      rows.size(),
      [&](std::span<const double> values, std::span<double> residuals) {
        for (size_t i = 0; i < rows.size(); ++i) {
          const CollectiveRow& r = *rows[i];
          const DomainGroup group{r.group.num_ranks, values[0] * pcie4.line_rate_GBps, false};
          residuals[i] = std::log(domain_time_us(c.nccl, pcie4, r.op, r.bytes, group) / r.time_us);
        }
      });
  for (double* rate : {&pcie4.ll.rate_GBps,
                       &pcie4.simple.rate_GBps,
                       &pcie4.all_to_all.ll_rate_GBps,
                       &pcie4.all_to_all.simple_rate_GBps}) {
    *rate *= result.values[0];
  }
  pcie4.line_rate_GBps = kLineRate;
  put(c.links, pcie4);
  origins["pcie4"] = {.origin =
                          "latencies of pcie5; its rates by one factor fitted on large "
                          "messages over PCIe 4; interval of pcie5",
                      .fitted_on = described_groups(rows)};
}

}  // namespace

Result<std::string> fit_collectives(const CsvTable& table) {
  const std::vector<CollectiveRow> rows = collective_rows(table);
  const std::string_view previous = builtin_document("fits", "collectives").value_or("");
  CollectiveConstants constants;
  if (!previous.empty()) {
    MW_ASSIGN_OR_RETURN(constants, parse_collective_constants(previous, "built-in constants"));
  }
  constants.nccl = kNcclConstants;
  std::map<std::string, FitOrigin> origins;
  std::vector<double> unseen;
  size_t groups = 0;
  for (const LinkClass& k : link_classes()) {
    if (std::optional<FittedLink> fitted =
            fit_link_class(k, constants.nccl, constants.link(k.generation), rows)) {
      put(constants.links, fitted->constants);
      if (k.nvlink) {
        unseen.insert(unseen.end(), fitted->unseen.begin(), fitted->unseen.end());
        groups += fitted->origin.held_out.groups;
      }
      origins[k.generation] = std::move(fitted->origin);
    }
  }
  derive_pcie4(constants, origins, rows);
  for (const NetworkClass& k : network_classes()) {
    if (std::optional<FittedNetwork> fitted = fit_network_class(k, constants, rows)) {
      put(constants.networks, fitted->constants);
      origins[k.generation] = std::move(fitted->origin);
    }
  }
  derive_hdr(constants, origins);
  if (origins.empty()) {
    return Error{.field = "rows",
                 .rule = "hold no collective that the fit can use",
                 .remedy = "nccl-tests with a process or thread per device, on NVLink or PCIe"};
  }
  return collective_document(constants, origins, held_out_accuracy(groups, unseen), previous);
}

}  // namespace meshwright
