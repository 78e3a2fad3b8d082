// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/operators/operator_fits.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "sim/core/json_reader.h"
#include "sim/spec/builtin_documents.h"

namespace meshwright {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr Range kRatio{1e-3, 1e3};
constexpr Range kError{-1, 1e3};

OperatorFit read_operator_fit(const Json& json, ObjectReader& parent, size_t index) {
  OperatorFit fit;
  ObjectReader r(json, parent.origin(), fmt::format("/fits/{}", index));
  fit.device = r.text("device");
  fit.kind = r.text("kind");
  fit.rows = r.integer("rows", kPositiveCount);
  fit.marked = r.boolean_or("marked", false);
  const Json& constants = r.object("constants");
  const Json& held_out = r.object("held_out");
  for (const auto& [name, value] : constants.items()) {
    if (value.is_number()) {
      fit.constants[name] = value.get<double>();
    } else {
      r.fail("constants", value.dump(), name + " must be a number");
    }
  }
  ObjectReader h(held_out, parent.origin(), r.pointer_to("held_out"));
  fit.held_out = {.rows = h.integer("rows", kPositiveCount),
                  .median = h.number("median", kError),
                  .p90 = h.number("p90", kError),
                  .bias = h.number("bias", kError),
                  .ratio_low = h.number("ratio_low", kRatio),
                  .ratio_high = h.number("ratio_high", kRatio)};
  const auto pass_on = [&](ObjectReader& reader, const std::string& where) {
    if (auto done = reader.finish(); !done) {
      const Error& e = done.error();
      parent.fail(fmt::format("fits/{}/{}{}", index, where, e.field), e.value, e.rule, e.remedy);
    }
  };
  pass_on(r, "");
  pass_on(h, "held_out/");
  return fit;
}

/// Distance of two devices in what the models scale by.
double device_distance(const DeviceSpec& a, const DeviceSpec& b) {
  return std::abs(std::log(a.peak_bf16 / b.peak_bf16)) +
         std::abs(std::log(a.memory_bandwidth / b.memory_bandwidth));
}

}  // namespace

Result<OperatorFits> parse_operator_fits(std::string_view text, const std::string& origin) {
  MW_ASSIGN_OR_RETURN(const Json json, parse_json(text, origin));
  ObjectReader r(json, origin);
  OperatorFits result;
  r.integer("schema_version", {1, 1});
  result.family = r.text("family");
  result.origin = r.text("origin");
  const Json& fits = r.array("fits");
  for (size_t i = 0; i < fits.size(); ++i) {
    result.fits.push_back(read_operator_fit(fits[i], r, i));
  }
  MW_RETURN_IF_ERROR(r.finish());
  return result;
}

std::string operator_fits_text(const OperatorFits& fits) {
  OrderedJson list = OrderedJson::array();
  for (const OperatorFit& fit : fits.fits) {
    OrderedJson constants = OrderedJson::object();
    for (const auto& [name, value] : fit.constants) constants[name] = four_digits(value);
    const HeldOutAccuracy& h = fit.held_out;
    list.push_back({{"device", fit.device},
                    {"kind", fit.kind},
                    {"rows", fit.rows},
                    {"marked", fit.marked},
                    {"constants", std::move(constants)},
                    {"held_out",
                     {{"rows", h.rows},
                      {"median", four_digits(h.median)},
                      {"p90", four_digits(h.p90)},
                      {"bias", four_digits(h.bias)},
                      {"ratio_low", four_digits(h.ratio_low)},
                      {"ratio_high", four_digits(h.ratio_high)}}}});
  }
  const OrderedJson document{{"schema_version", 1},
                             {"family", fits.family},
                             {"origin", fits.origin},
                             {"fits", std::move(list)}};
  return document.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

const OperatorFits& builtin_operator_fits(const std::string& family) {
  static const std::map<std::string, OperatorFits> kRead = [] {
    std::map<std::string, OperatorFits> read;
    for (const char* name : {"gemm", "attention"}) {
      const auto text = builtin_document("fits", name);
      if (!text) {
        read[name] = {};
        continue;
      }
      auto fits = parse_operator_fits(*text, std::string("built-in ") + name);
      MW_CHECK(fits.has_value(), to_string(fits.error()));
      read[name] = std::move(*fits);
    }
    return read;
  }();
  return kRead.at(family);
}

std::optional<ChosenFit> choose_fit(const OperatorFits& fits,
                                    const DeviceSpec& device,
                                    std::string_view kind) {
  std::optional<ChosenFit> nearest;
  double nearest_distance = std::numeric_limits<double>::infinity();
  for (const OperatorFit& fit : fits.fits) {
    if (fit.kind != kind) continue;
    if (fit.device == device.name) return ChosenFit{.fit = &fit, .transferred = false};
    if (fit.marked) continue;
    const DeviceSpec* source = find_builtin_gpu(fit.device);
    if (source == nullptr || source->architecture != device.architecture) continue;
    const double distance = device_distance(*source, device);
    if (distance >= nearest_distance) continue;
    nearest_distance = distance;
    nearest = ChosenFit{.fit = &fit, .transferred = true};
  }
  return nearest;
}

}  // namespace meshwright
