// SPDX-License-Identifier: Apache-2.0
#include "sim/step/step_constants.h"

#include <algorithm>
#include <map>

#include "sim/core/json_reader.h"
#include "sim/spec/builtin_documents.h"

namespace meshwright {
namespace {

const std::map<std::string, double DeviceFacts::*>& device_keys() {
  static const std::map<std::string, double DeviceFacts::*> kKeys{
      {"gemm_fraction", &DeviceFacts::gemm_fraction},
      {"fp8_fraction", &DeviceFacts::fp8_fraction},
      {"fp4_fraction", &DeviceFacts::fp4_fraction},
      {"nvlink_efficiency", &DeviceFacts::nvlink_efficiency},
  };
  return kKeys;
}

const std::map<std::string, double FrameworkProfile::*>& framework_keys() {
  using F = FrameworkProfile;
  static const std::map<std::string, double F::*> kKeys{
      {"flash_forward", &F::flash_forward},
      {"flash_backward", &F::flash_backward},
      {"kernel_gap_s", &F::kernel_gap_s},
      {"host_norm", &F::host_norm},
      {"host_layer_s", &F::host_layer_s},
      {"host_moe_s", &F::host_moe_s},
      {"host_backward", &F::host_backward},
      {"host_collective_s", &F::host_collective_s},
      {"host_micro_batch_s", &F::host_micro_batch_s},
      {"host_step_s", &F::host_step_s},
      {"tp_exposed", &F::tp_exposed},
      {"tp_async_exposed", &F::tp_async_exposed},
      {"ep_exposed", &F::ep_exposed},
      {"ep_nic_exposed", &F::ep_nic_exposed},
      {"cp_exposed", &F::cp_exposed},
      {"pp_exposed", &F::pp_exposed},
      {"dp_exposed", &F::dp_exposed},
      {"dp_hidden_share", &F::dp_hidden_share},
      {"fsdp_interference", &F::fsdp_interference},
      {"zero3_nic_efficiency", &F::zero3_nic_efficiency},
      {"accumulate_bytes", &F::accumulate_bytes},
      {"zero_nic_efficiency", &F::zero_nic_efficiency},
      {"nic_efficiency", &F::nic_efficiency},
      {"gradient_bytes", &F::gradient_bytes},
      {"elementwise", &F::elementwise},
      {"elementwise_compiled", &F::elementwise_compiled},
      {"score_traffic", &F::score_traffic},
      {"loss_bytes_per_logit", &F::loss_bytes_per_logit},
      {"unfused_fraction", &F::unfused_fraction},
      {"memory_fraction", &F::memory_fraction},
      {"cast_traffic", &F::cast_traffic},
      {"rowwise_penalty", &F::rowwise_penalty},
      {"moe_gemm", &F::moe_gemm},
      {"moe_traffic", &F::moe_traffic},
      {"mamba_traffic", &F::mamba_traffic},
      {"collective_alpha_s", &F::collective_alpha_s},
      {"straggle_per_doubling", &F::straggle_per_doubling},
      {"spread", &F::spread},
      {"spread_experts", &F::spread_experts},
      {"spread_assumed", &F::spread_assumed},
      {"bubble_zb1", &F::bubble_zb1},
      {"bubble_zb2", &F::bubble_zb2},
  };
  return kKeys;
}

std::vector<std::string> texts(const Json& array) {
  std::vector<std::string> result;
  for (const Json& x : array) {
    if (x.is_string()) result.push_back(x.get<std::string>());
  }
  return result;
}

bool names(const std::vector<std::string>& list, const std::string& name) {
  return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

Result<StepConstants> StepConstants::parse(std::string_view text, const std::string& origin) {
  MW_ASSIGN_OR_RETURN(const Json document, parse_json(text, origin));
  ObjectReader root(document, origin);
  root.ignore("schema_version");
  root.ignore("_source");
  root.ignore("accuracy");
  StepConstants constants;
  const Json& sets = root.array("sets");
  for (size_t i = 0; i < sets.size(); ++i) {
    ObjectReader r(sets[i], origin, "/sets/" + std::to_string(i));
    StepConstantSet set{.name = r.text("name")};
    r.ignore("origin");
    set.frameworks = texts(r.array("frameworks", false));
    set.devices = texts(r.array("devices", false));
    const std::vector<std::string> fitted = texts(r.array("fitted", false));
    const Json& values = r.object("values");
    ObjectReader v(values, origin, r.pointer_to("values"));
    for (const auto& [key, unused] : values.items()) {
      if (!device_keys().contains(key) && !framework_keys().contains(key)) continue;
      set.entries.push_back(
          {.key = key,
           .value = v.number(key, {0, 1e9}),
           .fitted = std::find(fitted.begin(), fitted.end(), key) != fitted.end()});
    }
    MW_RETURN_IF_ERROR(v.finish());
    MW_RETURN_IF_ERROR(r.finish());
    constants.sets_.push_back(std::move(set));
  }
  MW_RETURN_IF_ERROR(root.finish());
  return constants;
}

Result<StepConstants> StepConstants::builtin() {
  const std::optional<std::string_view> text = builtin_document("fits", "frameworks");
  MW_CHECK(text.has_value());
  return parse(*text, "models/fits/frameworks.json");
}

void StepConstants::apply(const std::string& framework,
                          const std::string& device_class,
                          DeviceFacts& device,
                          FrameworkProfile& profile) const {
  profile.name = framework;
  for (const StepConstantSet& set : sets_) {
    if (!names(set.frameworks, framework) || !names(set.devices, device_class)) continue;
    for (const StepConstantSet::Entry& e : set.entries) {
      if (const auto d = device_keys().find(e.key); d != device_keys().end()) {
        device.*(d->second) = e.value;
      } else {
        profile.*(framework_keys().at(e.key)) = e.value;
      }
    }
  }
}

Result<PublishedDevice> published_device(const std::string& name) {
  static const Json kDevices = [] {
    const std::optional<std::string_view> text = builtin_document("published", "devices");
    MW_CHECK(text.has_value());
    return parse_json(*text, "models/published/devices.json").value()["devices"];
  }();
  if (!kDevices.contains(name)) {
    std::string known;
    for (const auto& [key, unused] : kDevices.items()) known += (known.empty() ? "" : ", ") + key;
    return Error{.where = "models/published/devices.json",
                 .field = "device",
                 .value = name,
                 .rule = "is not a known device",
                 .remedy = "known: " + known};
  }
  ObjectReader r(kDevices.at(name), "models/published/devices.json", "/devices/" + name);
  PublishedDevice d;
  d.device_class = r.text("class");
  d.facts.name = name;
  d.facts.peak_bf16 = 1e12 * r.number("peak_bf16_TFLOPs", kPositiveQuantity);
  d.facts.peak_fp8 = 1e12 * r.number("peak_fp8_TFLOPs", kPositiveQuantity);
  d.facts.peak_fp4 = 1e12 * r.number("peak_fp4_TFLOPs", kPositiveQuantity);
  d.facts.peak_fp32 = 1e12 * r.number("peak_fp32_TFLOPs", kPositiveQuantity);
  d.facts.memory_bandwidth = 1e9 * r.number("memory_bandwidth_GBps", kPositiveQuantity);
  d.facts.memory_bytes = kBytesPerGiB * r.number("memory_GiB", kPositiveQuantity);
  d.facts.num_sms = r.number("num_sms", kPositiveCount);
  d.facts.nvlink_bandwidth = 1e9 * r.number("nvlink_GBps", kPositiveQuantity);
  d.facts.nvlink_domain = r.number("nvlink_domain", kPositiveCount);
  r.ignore("source");
  MW_RETURN_IF_ERROR(r.finish());
  return d;
}

}  // namespace meshwright
