// The families of operator times: what each model makes of one row, with its interval.
#pragma once

#include <string>
#include <vector>

#include "sim/core/result.h"
#include "sim/cost/operators/operator_fits.h"
#include "sim/validate/measured_operator.h"
#include "sim/validate/validation.h"

namespace meshwright {

[[nodiscard]] std::vector<ValidatedRow> predict_gemm(const CsvTable& table);
[[nodiscard]] Result<std::vector<ValidatedRow>> predict_gemm_with(const CsvTable& table,
                                                                  const std::string& constants);
[[nodiscard]] std::vector<ValidatedRow> predict_attention(const CsvTable& table);
[[nodiscard]] Result<std::vector<ValidatedRow>> predict_attention_with(
    const CsvTable& table, const std::string& constants);

/// The row without its prediction: names, unit, measurement, or why it is skipped.
[[nodiscard]] ValidatedRow validated_operator_row(const MeasuredOperator& row,
                                                  const std::string& source);

/// Adds the prediction and its 80 % interval, from the spread of the fit's held-out rows; wider and
/// named in the source where the constants are another device's.
void set_operator_prediction(ValidatedRow& row, const ChosenFit& chosen, double predicted_us);

/// A document of `meshwright fit`. Errors: unreadable, or of another family.
[[nodiscard]] Result<OperatorFits> read_operator_fits(const std::string& path,
                                                      const std::string& family);

}  // namespace meshwright
