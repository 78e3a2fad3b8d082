// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/collective_document.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/text.h"

namespace meshwright {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson protocol_json(const ProtocolConstants& p) {
  OrderedJson j = OrderedJson::object();
  if (p.base_us > 0) j["base_us"] = four_digits(p.base_us);
  j["hop_us"] = four_digits(p.hop_us);
  j["rate_GBps"] = four_digits(p.rate_GBps);
  return j;
}

OrderedJson constants_json(const LinkConstants& c) {
  OrderedJson j = {{"generation", c.generation},
                   {"line_rate_GBps", c.line_rate_GBps},
                   {"base_us", four_digits(c.base_us)}};
  if (c.ll.rate_GBps > 0) j["ll"] = protocol_json(c.ll);
  if (c.ll128.rate_GBps > 0) j["ll128"] = protocol_json(c.ll128);
  j["simple"] = protocol_json(c.simple);
  j["simple_overlap_exponent"] = four_digits(c.simple_overlap);
  j["local_copy_ratio"] = four_digits(c.local_copy);
  if (c.ll128_max_chunk_bytes > 0) j["ll128_max_chunk_bytes"] = c.ll128_max_chunk_bytes;
  if (c.pair_rate_GBps > 0) j["pair_rate_GBps"] = four_digits(c.pair_rate_GBps);
  j["all_to_all"] = {{"base_us", four_digits(c.all_to_all.base_us)},
                     {"peer_us", four_digits(c.all_to_all.peer_us)},
                     {"ll_rate_GBps", four_digits(c.all_to_all.ll_rate_GBps)},
                     {"simple_rate_GBps", four_digits(c.all_to_all.simple_rate_GBps)},
                     {"local_copy_ratio", four_digits(c.all_to_all.local_copy)}};
  if (c.nvls.channels > 0) {
    j["nvls"] = {{"loop_us", four_digits(c.nvls.loop_us)},
                 {"rate_GBps", four_digits(c.nvls.rate_GBps)},
                 {"channels", c.nvls.channels}};
  }
  return j;
}

OrderedJson constants_json(const NetworkConstants& c) {
  return {{"generation", c.generation},
          {"line_rate_GBps", c.line_rate_GBps},
          {"efficiency_ratio", four_digits(c.efficiency)},
          {"ll_hop_us", four_digits(c.ll_hop_us)},
          {"simple_hop_us", four_digits(c.simple_hop_us)},
          {"fill_loops", four_digits(c.fill_loops)},
          {"ll128", c.ll128}};
}

OrderedJson held_out_json(const HeldOut& h) {
  return {{"rows", h.rows},
          {"groups", h.groups},
          {"median", four_digits(h.median)},
          {"p90", four_digits(h.p90)},
          {"bias", four_digits(h.bias)}};
}

OrderedJson previous_entry(const OrderedJson& previous,
                           const char* list,
                           const std::string& generation) {
  if (!previous.is_object() || !previous.contains(list)) return OrderedJson::object();
  for (const OrderedJson& entry : previous[list]) {
    if (entry.value("generation", "") == generation) return entry;
  }
  return OrderedJson::object();
}

template <class T>
OrderedJson sets_json(const std::vector<T>& sets,
                      const char* list,
                      const std::map<std::string, FitOrigin>& origins,
                      const OrderedJson& previous) {
  OrderedJson out = OrderedJson::array();
  for (const T& set : sets) {
    const auto found = origins.find(set.generation);
    if (found == origins.end()) {
      out.push_back(previous_entry(previous, list, set.generation));
      continue;
    }
    const FitOrigin& o = found->second;
    OrderedJson j = constants_json(set);
    j["measured_over_predicted_80"] = {{"low", four_digits(set.measured_low)},
                                       {"high", four_digits(set.measured_high)}};
    j["origin"] = o.origin;
    j["fitted_on"] = o.fitted_on;
    if (o.held_out.rows > 0) j["held_out"] = held_out_json(o.held_out);
    for (const auto& [name, error] : o.relative_errors) {
      // A constant that the data do not fix has no finite error.
      j["relative_errors"][name] =
          std::isfinite(error) ? OrderedJson(four_digits(error)) : OrderedJson();
    }
    out.push_back(std::move(j));
  }
  return out;
}

}  // namespace

std::string collective_document(const CollectiveConstants& c,
                                const std::map<std::string, FitOrigin>& origins,
                                const HeldOut& nvlink,
                                std::string_view previous_text) {
  const OrderedJson previous = OrderedJson::parse(previous_text, nullptr, false);
  OrderedJson j = {
      {"schema_version", 1},
      {"about",
       "Constants of NCCL's collectives by link generation and by network class; the forms are in "
       "sim/cost/collectives. Rates hold at line_rate_GBps and scale with it."},
      {"fitted_by", "sim/fit/collective_fit.cpp"},
      {"nccl",
       {{"ll128_overlap_exponent", c.nccl.ll128_overlap},
        {"nvls_fill_loops", c.nccl.nvls_fill_loops},
        {"nvls_min_ranks", c.nccl.nvls_min_ranks},
        {"nvls_min_bytes", c.nccl.nvls_min_bytes},
        {"nvls_from_bytes", c.nccl.nvls_from_bytes},
        {"ll128_hop_over_ll_ratio", c.nccl.ll128_hop_over_ll}}},
      {"origin",
       "nccl: ll128_overlap_exponent is the best of 1.3, 1.5, 1.7 and 2 on held-out groups (flat); "
       "nvls_fill_loops lies between separate fits to Hopper and Blackwell; ranks and bytes are "
       "where published runs show NCCL 2.27-2.29 change to NVLS; "
       "ll128_hop_over_ll_ratio is 4.0/2.7 of NVIDIA/nccl src/graph/tuning.cc"}};
  if (nvlink.rows > 0) j["held_out_nvlink"] = held_out_json(nvlink);
  j["links"] = sets_json(c.links, "links", origins, previous);
  j["networks"] = sets_json(c.networks, "networks", origins, previous);
  return j.dump(2) + "\n";
}

}  // namespace meshwright
