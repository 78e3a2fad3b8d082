// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/cluster_spec.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "sim/core/hash.h"
#include "sim/core/json_reader.h"
#include "sim/spec/builtin_documents.h"
#include "sim/spec/cluster_json.h"

namespace meshwright {
namespace {

/// A document of models/hardware: the device and the node it comes in.
Result<ClusterSpec> read_hardware(std::string_view text,
                                  const std::string& origin,
                                  const MachineFacts& machine) {
  MW_ASSIGN_OR_RETURN(const Json json, parse_json(text, origin));
  ObjectReader r(json, origin);
  r.integer("schema_version", {1, 1});
  r.ignore("sources");
  const std::string name = r.text("name");
  ClusterSpec c = read_cluster(r, ClusterForm::kHardware);
  MW_RETURN_IF_ERROR(r.finish());
  c.device.name = name;
  if (c.is_local()) {
    c.device.memory = machine.memory;
    c.shared_cores = machine.cores;
  }
  return c;
}

/// A document's one device, as `count` of them.
ClusterSpec sized(ClusterSpec c, int64_t count, std::string name) {
  c.num_devices = 1;
  c = with_devices(std::move(c), static_cast<int>(count));
  c.name = std::move(name);
  return c;
}

Result<ClusterSpec> builtin_cluster(const std::string& name, const MachineFacts& machine) {
  const size_t x = name.find('x');
  const std::string device = x == std::string::npos ? name : name.substr(x + 1);
  const auto text = builtin_document("hardware", device);
  int64_t count = 0;
  const char* end = name.data() + (x == std::string::npos ? 0 : x);
  const auto parsed = std::from_chars(name.data(), end, count);
  const bool number = x != std::string::npos && parsed.ec == std::errc{} && parsed.ptr == end;
  if (!text) {
    const DeviceSpec* alias = find_builtin_gpu(device);
    const auto near = alias != nullptr ? std::optional<std::string>(alias->name)
                                       : nearest_word(device, builtin_devices());
    return Error{
        .where = "--cluster",
        .field = "cluster",
        .value = name,
        .rule = "is neither COUNTxDEVICE of a built-in device nor a path that exists",
        .remedy = near ? "did you mean " + *near + "?" : "devices: " + join(builtin_devices())};
  }
  if (!number || count < 1 || count > 1000000) {
    return Error{.where = "--cluster",
                 .field = "num_devices",
                 .value = name.substr(0, x == std::string::npos ? 0 : x),
                 .rule = "must be a whole number from 1 to 1000000",
                 .remedy = "write for example 8x" + device};
  }
  MW_ASSIGN_OR_RETURN(ClusterSpec c, read_hardware(*text, "built-in " + device, machine));
  return sized(std::move(c), count, name);
}

}  // namespace

double ClusterSpec::scale_slowdown() const {
  return scale_slowdown_per_doubling * std::log2(static_cast<double>(num_nodes()));
}

Result<ClusterSpec> load_cluster(const std::string& name_or_path, const MachineFacts& machine) {
  std::error_code ec;
  if (!std::filesystem::exists(name_or_path, ec)) return builtin_cluster(name_or_path, machine);
  MW_ASSIGN_OR_RETURN(const std::string text, read_text_file(name_or_path));
  MW_ASSIGN_OR_RETURN(const Json json, parse_json(text, name_or_path));
  ObjectReader r(json, name_or_path);
  r.integer("schema_version", {1, 1});
  r.ignore("sources");
  const std::string name = r.text("name");
  const int64_t count = r.integer("num_devices", {1, 1e6});
  ClusterSpec c;
  if (json.contains("device") && json["device"].is_string()) {
    const std::string device = r.text("device");
    const auto builtin = builtin_document("hardware", device);
    if (!builtin) {
      r.fail("device",
             '"' + device + '"',
             "is not a built-in device",
             "built-in: " + join(builtin_devices()));
    } else {
      MW_ASSIGN_OR_RETURN(c, read_hardware(*builtin, "built-in " + device, machine));
    }
  } else {
    const Json& device = r.object("device");
    MW_RETURN_IF_ERROR(r.finish(false));
    MW_ASSIGN_OR_RETURN(c, read_hardware(device.dump(), name_or_path + "#/device", machine));
  }
  if (r.has("devices_per_node"))
    c.devices_per_node = static_cast<int>(r.integer("devices_per_node", {1, 1e5}));
  if (r.has("intra_node")) c.intra_node = read_link(r, "intra_node", true, ClusterForm::kHardware);
  if (r.has("inter_node")) c.inter_node = read_link(r, "inter_node", true, ClusterForm::kHardware);
  if (r.has("price_usd_per_device_hour")) {
    c.price_usd_per_device_hour = r.optional_number("price_usd_per_device_hour", kNonNegative);
  }
  MW_RETURN_IF_ERROR(r.finish());
  return sized(std::move(c), count, name);
}

ClusterSpec with_devices(ClusterSpec c, int num_devices) {
  if (num_devices == c.num_devices) return c;
  if (c.is_local()) {
    c.device.memory = c.device.memory * (static_cast<double>(c.num_devices) / num_devices);
    c.devices_per_node = num_devices;
  }
  c.name = fmt::format("{} devices of {}", num_devices, c.name);
  c.num_devices = num_devices;
  return c;
}

std::vector<std::string> builtin_devices() { return builtin_names("hardware"); }

const DeviceSpec* find_builtin_gpu(std::string_view name_or_alias) {
  static const std::vector<DeviceSpec> kGpus = [] {
    std::vector<DeviceSpec> gpus;
    for (const std::string& name : builtin_devices()) {
      auto c = read_hardware(*builtin_document("hardware", name), "built-in " + name, {});
      MW_CHECK(c.has_value(), "models/hardware/" + name);
      if (c->device.kind == DeviceKind::kGpu) gpus.push_back(std::move(c->device));
    }
    return gpus;
  }();
  for (const DeviceSpec& d : kGpus) {
    if (d.name == name_or_alias) return &d;
    for (const std::string& alias : d.aliases) {
      if (alias == name_or_alias) return &d;
    }
  }
  return nullptr;
}

MachineFacts read_machine_facts() {
  MachineFacts facts;
  facts.cores = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  facts.memory = Bytes{static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<double>(sysconf(_SC_PAGESIZE))};
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) {
      facts.cpu_model = line.substr(std::min(line.size(), line.find(':') + 2));
      break;
    }
  }
  std::string machine_id;
  std::ifstream("/etc/machine-id") >> machine_id;
  facts.id = hex(fnv1a(fmt::format(
      "{}|{}|{:.0f}|{}", facts.cpu_model, facts.cores, facts.memory.v / kBytesPerGiB, machine_id)));
  return facts;
}

}  // namespace meshwright
