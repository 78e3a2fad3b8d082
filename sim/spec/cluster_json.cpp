// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/cluster_json.h"

#include <algorithm>

#include "sim/core/enum_names.h"
#include "sim/spec/collective_constants.h"

namespace meshwright {
namespace {

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;
constexpr double kMega = 1e6;
constexpr double kMicro = 1e-6;
constexpr Range kFraction{1e-6, 1.0};
constexpr EnumNames<DeviceKind, 2> kDeviceKindNames{{"gpu", "cpu"}};

/// Quantities of one object in our units. The `_or` ones have a default in hardware documents.
class QuantityReader {
 public:
  QuantityReader(ObjectReader& r, ClusterForm form)
      : r_(r), complete_(form == ClusterForm::kPlan) {}

  double number_or(const std::string& key, double fallback, Range range) {
    return complete_ ? r_.number(key, range) : r_.number_or(key, fallback, range);
  }
  int whole_or(const std::string& key, int fallback, Range range) {
    return static_cast<int>(complete_ ? r_.integer(key, range)
                                      : r_.integer_or(key, fallback, range));
  }
  FlopPerSecond peak(const std::string& key) {
    return FlopPerSecond{r_.number(key, kPositiveQuantity) * kTera};
  }
  BytesPerSecond bandwidth(const std::string& key) {
    return BytesPerSecond{r_.number(key, kPositiveQuantity) * kGiga};
  }
  BytesPerSecond optional_bandwidth(const std::string& key) {
    return BytesPerSecond{r_.number_or(key, 0.0, kNonNegative) * kGiga};
  }
  Seconds time(const std::string& key) { return Seconds{r_.number(key, kNonNegative) * kMicro}; }
  Seconds time_or(const std::string& key, double fallback_us) {
    return Seconds{number_or(key, fallback_us, kNonNegative) * kMicro};
  }
  Bytes memory() {
    return complete_ ? Bytes{r_.number("memory_bytes", kPositiveQuantity)}
                     : Bytes{r_.number("memory_GiB", kPositiveQuantity) * kBytesPerGiB};
  }
  Bytes reserved() {
    return complete_ ? Bytes{r_.number("reserved_bytes", kNonNegative)}
                     : Bytes{r_.number_or("reserved_GiB", 0.0, kNonNegative) * kBytesPerGiB};
  }
  Bytes host_memory() {
    return complete_ ? Bytes{r_.number_or("host_memory_bytes", 0.0, kNonNegative)}
                     : Bytes{r_.number_or("host_memory_GiB", 0.0, kNonNegative) * kBytesPerGiB};
  }

 private:
  ObjectReader& r_;
  bool complete_;
};

std::vector<std::string> read_aliases(ObjectReader& r) {
  std::vector<std::string> aliases;
  if (!r.has("aliases")) return aliases;
  for (const Json& alias : r.array("aliases")) {
    if (alias.is_string()) {
      aliases.push_back(alias.get<std::string>());
    } else {
      r.fail("aliases", alias.dump(), "must be a list of names");
    }
  }
  return aliases;
}

DeviceSpec read_device(ObjectReader& r, ClusterForm form) {
  const bool plan = form == ClusterForm::kPlan;
  QuantityReader q(r, form);
  DeviceSpec d;
  d.kind = r.word("kind",
                  kDeviceKindNames,
                  plan ? std::optional<DeviceKind>() : std::optional(DeviceKind::kGpu));
  if (!plan) {
    d.architecture = r.text_or("architecture", "");
    d.aliases = read_aliases(r);
  }
  d.peak_bf16 = q.peak("peak_bf16_TFLOPs");
  d.peak_fp32 = q.peak("peak_fp32_TFLOPs");
  d.peak_fp8 = FlopPerSecond{r.number_or("peak_fp8_TFLOPs", 0.0, kNonNegative) * kTera};
  d.memory_bandwidth = q.bandwidth("memory_bandwidth_GBps");
  if (plan || d.kind == DeviceKind::kGpu) d.memory = q.memory();
  d.reserved = q.reserved();
  d.host_bandwidth = q.optional_bandwidth("host_GBps");
  d.host_memory = q.host_memory();
  d.nvme_bandwidth = q.optional_bandwidth("nvme_GBps");
  d.num_sms = q.whole_or("num_sms", 1, {1, 1e5});
  if (!plan) {
    d.l2_cache = Bytes{r.number_or("l2_cache_MB", 0.0, kNonNegative) * kMega};
    d.boost_clock_GHz = r.number_or("boost_clock_GHz", 1.0, kPositiveQuantity);
  }
  d.matmul_fraction = q.number_or("matmul_fraction", 0.7, kFraction);
  d.attention_forward_fraction = q.number_or("attention_forward_fraction", 0.5, kFraction);
  d.attention_backward_fraction = q.number_or("attention_backward_fraction", 0.3, kFraction);
  d.memory_fraction = q.number_or("memory_fraction", 0.8, kFraction);
  d.launch = q.time_or("launch_us", 4.0);
  d.host_per_layer = q.time_or("host_per_layer_us", 500.0);
  d.host_per_micro_batch = q.time_or("host_per_micro_batch_us", 0.0);
  return d;
}

Json link_to_json(const LinkSpec& l) {
  return {{"bandwidth_GBps", l.bandwidth.v / kGiga},
          {"efficiency", l.efficiency},
          {"alpha_us", l.alpha.v / kMicro},
          {"base_us", l.base.v / kMicro},
          {"generation", l.generation}};
}

}  // namespace

LinkSpec read_link(ObjectReader& parent, const std::string& key, bool required, ClusterForm form) {
  const bool plan = form == ClusterForm::kPlan;
  const Json& json = parent.object(key, required);
  if (!parent.has(key)) return {};
  ObjectReader r(json, parent.origin(), "/" + key);
  QuantityReader q(r, form);
  LinkSpec link;
  link.bandwidth = q.bandwidth("bandwidth_GBps");
  link.efficiency = q.number_or("efficiency", 1.0, kFraction);
  link.generation = r.text_or("generation", "");
  // A generation is priced by its own constants: in a person's document the two would do nothing.
  if (plan || link.generation.empty()) {
    link.alpha = q.time("alpha_us");
    link.base = q.time_or("base_us", 0.0);
  } else if (const std::vector<std::string> known = key == "inter_node"
                                                        ? collective_constants().network_names()
                                                        : collective_constants().link_names();
             std::find(known.begin(), known.end(), link.generation) == known.end()) {
    r.fail("generation",
           '"' + link.generation + '"',
           "has no constants",
           "known: " + join(known) + "; or leave it out and give alpha_us and efficiency");
  }
  if (!plan) r.ignore("source");
  if (auto done = r.finish(); !done) {
    const Error& e = done.error();
    parent.fail(key + "/" + e.field, e.value, e.rule, e.remedy);
  }
  return link;
}

ClusterSpec read_cluster(ObjectReader& r, ClusterForm form) {
  const bool plan = form == ClusterForm::kPlan;
  ClusterSpec c;
  c.device = read_device(r, form);
  // Ranks of a hardware document's CPU share one machine, and may have no network.
  const bool one_machine = !plan && c.is_local();
  if (!one_machine) {
    c.devices_per_node = static_cast<int>(r.integer("devices_per_node", {1, plan ? 1e6 : 1e5}));
  }
  c.intra_node = read_link(r, "intra_node", true, form);
  c.inter_node = read_link(r, "inter_node", !plan && !one_machine, form);
  c.scale_slowdown_per_doubling =
      QuantityReader(r, form).number_or("scale_slowdown_per_doubling", 0.0, {0, 1});
  c.price_usd_per_device_hour = r.optional_number("price_usd_per_device_hour", kNonNegative);
  return c;
}

Json cluster_to_json(const ClusterSpec& c) {
  const DeviceSpec& d = c.device;
  Json json = {{"name", c.name},
               {"device", d.name},
               {"kind", kDeviceKindNames(d.kind)},
               {"num_devices", c.num_devices},
               {"devices_per_node", c.devices_per_node},
               {"peak_bf16_TFLOPs", d.peak_bf16.v / kTera},
               {"peak_fp32_TFLOPs", d.peak_fp32.v / kTera},
               {"peak_fp8_TFLOPs", d.peak_fp8.v / kTera},
               {"host_GBps", d.host_bandwidth.v / kGiga},
               {"host_memory_bytes", d.host_memory.v},
               {"nvme_GBps", d.nvme_bandwidth.v / kGiga},
               {"memory_bandwidth_GBps", d.memory_bandwidth.v / kGiga},
               {"memory_bytes", d.memory.v},
               {"reserved_bytes", d.reserved.v},
               {"num_sms", d.num_sms},
               {"matmul_fraction", d.matmul_fraction},
               {"attention_forward_fraction", d.attention_forward_fraction},
               {"attention_backward_fraction", d.attention_backward_fraction},
               {"memory_fraction", d.memory_fraction},
               {"launch_us", d.launch.v / kMicro},
               {"host_per_layer_us", d.host_per_layer.v / kMicro},
               {"host_per_micro_batch_us", d.host_per_micro_batch.v / kMicro},
               {"scale_slowdown_per_doubling", c.scale_slowdown_per_doubling},
               {"intra_node", link_to_json(c.intra_node)}};
  if (c.inter_node.bandwidth.v > 0) json["inter_node"] = link_to_json(c.inter_node);
  if (c.shared_cores) json["shared_cores"] = *c.shared_cores;
  if (c.price_usd_per_device_hour) json["price_usd_per_device_hour"] = *c.price_usd_per_device_hour;
  return json;
}

Result<ClusterSpec> cluster_from_json(const Json& json,
                                      const std::string& origin,
                                      const std::string& pointer) {
  ObjectReader r(json, origin, pointer);
  const std::string name = r.text("name");
  const std::string device = r.text("device");
  ClusterSpec c = read_cluster(r, ClusterForm::kPlan);
  c.name = name;
  c.device.name = device;
  c.num_devices = static_cast<int>(r.integer("num_devices", {1, 1e6}));
  if (r.has("shared_cores")) c.shared_cores = static_cast<int>(r.integer("shared_cores", {1, 1e5}));
  MW_RETURN_IF_ERROR(r.finish());
  return c;
}

}  // namespace meshwright
