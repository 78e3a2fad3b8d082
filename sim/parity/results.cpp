// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "sim/core/json_reader.h"
#include "sim/parity/parity.h"

namespace meshwright {
namespace {

/// JSON has no NaN: an error that is not a number is written as null, and read back as NaN (not
/// ok).
double read_error(ObjectReader& r, const std::string& key) {
  return r.has(key) ? r.number(key, {0, 1e300}) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

bool ParityResult::ok() const {
  const auto within = [](double e) { return e <= kParityTolerance; };  // false for NaN
  return within(loss_rel_err) && within(grad_norm_rel_err) && within(max_grad_rel_err) &&
         copies_equal;
}

std::string to_json_text(const std::vector<ParityResult>& results) {
  Json list = Json::array();
  for (const ParityResult& r : results) {
    list.push_back({{"loss_rel_err", r.loss_rel_err},
                    {"grad_norm_rel_err", r.grad_norm_rel_err},
                    {"max_grad_rel_err", r.max_grad_rel_err},
                    {"worst_tensor", r.worst_tensor},
                    {"copies_equal", r.copies_equal}});
  }
  return Json{{"schema_version", 1}, {"results", std::move(list)}}.dump();
}

Result<std::vector<ParityResult>> parse_parity_results(std::string_view text,
                                                       const std::string& origin) {
  MW_ASSIGN_OR_RETURN(const Json json, parse_json(text, origin));
  ObjectReader r(json, origin);
  r.integer("schema_version", {1, 1});
  std::vector<ParityResult> out;
  for (const Json& item : r.array("results")) {
    ObjectReader i(item, origin, "/results");
    ParityResult result;
    result.loss_rel_err = read_error(i, "loss_rel_err");
    result.grad_norm_rel_err = read_error(i, "grad_norm_rel_err");
    result.max_grad_rel_err = read_error(i, "max_grad_rel_err");
    result.worst_tensor = i.text_or("worst_tensor", "");
    result.copies_equal = i.boolean_or("copies_equal", false);
    MW_RETURN_IF_ERROR(i.finish());
    out.push_back(std::move(result));
  }
  MW_RETURN_IF_ERROR(r.finish());
  return out;
}

}  // namespace meshwright
