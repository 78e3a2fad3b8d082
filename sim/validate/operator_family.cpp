// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/operator_family.h"

#include <cmath>

#include "sim/core/json_reader.h"

namespace meshwright {
namespace {

constexpr double kMillisecondsPerMicrosecond = 1e-3;
// Constants taken over from a neighbour miss by 1.2 times as much as own ones (h100 to h200 bf16
// 5.2 % against 4.4 %, b200 to gb200 6.0 % against 5.6 %, attention 8 % against 6 %).
constexpr double kTransferSpread = 1.2;

}  // namespace

ValidatedRow validated_operator_row(const MeasuredOperator& row, const std::string& source) {
  ValidatedRow result{.line = row.line,
                      .id = row.id,
                      .source = source + (row.marked ? " (marked)" : ""),
                      .device = row.device,
                      .unit = "ms",
                      .skipped = row.skipped};
  if (row.skipped.empty()) result.measured = row.measured_us * kMillisecondsPerMicrosecond;
  return result;
}

void set_operator_prediction(ValidatedRow& row, const ChosenFit& chosen, double predicted_us) {
  if (!std::isfinite(predicted_us) || predicted_us <= 0) {
    row.skipped = "the constants give no finite time";
    return;
  }
  if (chosen.transferred) row.source += " (constants of " + chosen.fit->device + ")";
  const double spread = chosen.transferred ? kTransferSpread : 1.0;
  const HeldOutAccuracy& h = chosen.fit->held_out;
  const double predicted_ms = predicted_us * kMillisecondsPerMicrosecond;
  row.predicted = predicted_ms;
  row.bound_low = predicted_ms * std::pow(h.ratio_low, spread);
  row.bound_high = predicted_ms * std::pow(h.ratio_high, spread);
}

Result<OperatorFits> read_operator_fits(const std::string& path, const std::string& family) {
  MW_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  MW_ASSIGN_OR_RETURN(OperatorFits fits, parse_operator_fits(text, path));
  if (fits.family != family) {
    return Error{.where = path,
                 .field = "family",
                 .value = fits.family,
                 .rule = "is not that of the table, " + family};
  }
  return fits;
}

}  // namespace meshwright
