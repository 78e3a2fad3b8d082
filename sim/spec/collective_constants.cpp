// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/collective_constants.h"

#include <algorithm>

#include "sim/core/json_reader.h"
#include "sim/spec/builtin_documents.h"

namespace meshwright {
namespace {

constexpr Range kRate{0, 1e5};
constexpr Range kMicroseconds{0, 1e5};
constexpr Range kFactor{0, 1e3};

template <class Read>
void read_part(ObjectReader& parent, const std::string& key, Read read) {
  const Json& json = parent.object(key, false);
  if (json.empty()) return;
  ObjectReader r(json, parent.origin(), parent.pointer_to(key));
  read(r);
  if (auto done = r.finish(); !done) {
    const Error& e = done.error();
    parent.fail(key + "/" + e.field, e.value, e.rule, e.remedy);
  }
}

ProtocolConstants read_protocol(ObjectReader& parent, const std::string& key) {
  ProtocolConstants p;
  read_part(parent, key, [&](ObjectReader& r) {
    p.base_us = r.number_or("base_us", 0, kMicroseconds);
    p.hop_us = r.number("hop_us", kMicroseconds);
    p.rate_GBps = r.number("rate_GBps", kPositiveQuantity);
  });
  return p;
}

void read_interval(ObjectReader& parent, double& low, double& high) {
  read_part(parent, "measured_over_predicted_80", [&](ObjectReader& r) {
    low = r.number("low", {1e-3, 1});
    high = r.number("high", {1, 1e3});
  });
}

LinkConstants read_link_constants(ObjectReader& r) {
  LinkConstants c;
  c.generation = r.text("generation");
  c.line_rate_GBps = r.number("line_rate_GBps", kPositiveQuantity);
  c.base_us = r.number("base_us", kMicroseconds);
  c.ll = read_protocol(r, "ll");
  c.ll128 = read_protocol(r, "ll128");
  c.simple = read_protocol(r, "simple");
  c.simple_overlap = r.number("simple_overlap_exponent", {1, 1e3});
  c.local_copy = r.number("local_copy_ratio", kFactor);
  c.ll128_max_chunk_bytes = r.number_or("ll128_max_chunk_bytes", 0, kNonNegative);
  c.pair_rate_GBps = r.number_or("pair_rate_GBps", 0, kRate);
  read_part(r, "all_to_all", [&](ObjectReader& a) {
    c.all_to_all = {.base_us = a.number("base_us", kMicroseconds),
                    .peer_us = a.number("peer_us", kMicroseconds),
                    .ll_rate_GBps = a.number_or("ll_rate_GBps", 0, kRate),
                    .simple_rate_GBps = a.number("simple_rate_GBps", kPositiveQuantity),
                    .local_copy = a.number("local_copy_ratio", kFactor)};
  });
  read_part(r, "nvls", [&](ObjectReader& v) {
    c.nvls = {.loop_us = v.number("loop_us", kMicroseconds),
              .rate_GBps = v.number("rate_GBps", kPositiveQuantity),
              .channels = static_cast<int>(v.integer("channels", {1, 1024}))};
  });
  read_interval(r, c.measured_low, c.measured_high);
  for (const char* note : {"fitted_on", "held_out", "origin", "relative_errors"}) r.ignore(note);
  return c;
}

NetworkConstants read_network_constants(ObjectReader& r) {
  NetworkConstants c;
  c.generation = r.text("generation");
  c.line_rate_GBps = r.number("line_rate_GBps", kPositiveQuantity);
  c.efficiency = r.number("efficiency_ratio", {1e-6, 1});
  c.ll_hop_us = r.number("ll_hop_us", kMicroseconds);
  c.simple_hop_us = r.number("simple_hop_us", kMicroseconds);
  c.fill_loops = r.number("fill_loops", kFactor);
  c.ll128 = r.boolean_or("ll128", true);
  read_interval(r, c.measured_low, c.measured_high);
  for (const char* note : {"fitted_on", "held_out", "origin", "relative_errors"}) r.ignore(note);
  return c;
}

template <class T>
const T* find_generation(const std::vector<T>& sets, std::string_view generation) {
  const auto at = std::find_if(
      sets.begin(), sets.end(), [&](const T& t) { return t.generation == generation; });
  return at == sets.end() ? nullptr : &*at;
}

template <class T>
std::vector<std::string> generation_names(const std::vector<T>& sets) {
  std::vector<std::string> names;
  for (const T& set : sets) names.push_back(set.generation);
  return names;
}

template <class T, class Read>
Result<std::vector<T>> read_sets(ObjectReader& parent, const std::string& key, Read read) {
  std::vector<T> sets;
  for (const Json& item : parent.array(key)) {
    ObjectReader r(item, parent.origin(), "/" + key + "/" + std::to_string(sets.size()));
    sets.push_back(read(r));
    MW_RETURN_IF_ERROR(r.finish());
  }
  return sets;
}

}  // namespace

const LinkConstants* CollectiveConstants::link(std::string_view generation) const {
  return find_generation(links, generation);
}

const NetworkConstants* CollectiveConstants::network(std::string_view generation) const {
  return find_generation(networks, generation);
}

std::vector<std::string> CollectiveConstants::link_names() const { return generation_names(links); }

std::vector<std::string> CollectiveConstants::network_names() const {
  return generation_names(networks);
}

Result<CollectiveConstants> parse_collective_constants(std::string_view text,
                                                       const std::string& origin) {
  MW_ASSIGN_OR_RETURN(const Json json, parse_json(text, origin));
  ObjectReader r(json, origin);
  r.integer("schema_version", {1, 1});
  for (const char* note : {"about", "origin", "fitted_by", "held_out_nvlink"}) r.ignore(note);
  CollectiveConstants c;
  read_part(r, "nccl", [&](ObjectReader& n) {
    c.nccl = {.ll128_overlap = n.number("ll128_overlap_exponent", {1, 1e3}),
              .nvls_fill_loops = n.number("nvls_fill_loops", kFactor),
              .nvls_min_ranks = static_cast<int>(n.integer("nvls_min_ranks", {2, 1e4})),
              .nvls_min_bytes = n.number("nvls_min_bytes", kNonNegative),
              .nvls_from_bytes = n.number("nvls_from_bytes", kNonNegative),
              .ll128_hop_over_ll = n.number("ll128_hop_over_ll_ratio", kFactor)};
  });
  MW_ASSIGN_OR_RETURN(c.links, read_sets<LinkConstants>(r, "links", read_link_constants));
  MW_ASSIGN_OR_RETURN(c.networks,
                      read_sets<NetworkConstants>(r, "networks", read_network_constants));
  MW_RETURN_IF_ERROR(r.finish());
  return c;
}

const CollectiveConstants& collective_constants() {
  static const CollectiveConstants kConstants = [] {
    const auto text = builtin_document("fits", "collectives");
    MW_CHECK(text.has_value(), "models/fits/collectives.json is not built in");
    return parse_collective_constants(*text, "built-in fits/collectives").value();
  }();
  return kConstants;
}

}  // namespace meshwright
