// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/gemm_table.h"
#include "sim/validate/operator_family.h"

namespace meshwright {
namespace {

std::vector<ValidatedRow> predict_gemm_rows(const CsvTable& table, const OperatorFits& fits) {
  std::vector<ValidatedRow> result;
  for (const GemmRow& row : read_gemm_rows(table)) {
    ValidatedRow& out = result.emplace_back(
        validated_operator_row(row, std::string("gemm ") + to_string(row.kind)));
    if (!out.skipped.empty()) continue;
    const std::optional<ChosenFit> chosen = choose_fit(fits, *row.spec, to_string(row.kind));
    if (!chosen) {
      out.skipped = std::string("no constants of ") + to_string(row.kind) + " for architecture " +
                    row.spec->architecture;
      continue;
    }
    const auto constants = constants_from(gemm_model_constants(row.kind), chosen->fit->constants);
    if (!constants) {
      out.skipped = "the constants of " + chosen->fit->device + " are not those of this model";
      continue;
    }
    set_operator_prediction(
        out, *chosen, gemm_time_us(*constants, gpu_facts(*row.spec), row.kind, row.shape));
  }
  return result;
}

}  // namespace

std::vector<ValidatedRow> predict_gemm(const CsvTable& table) {
  return predict_gemm_rows(table, builtin_operator_fits("gemm"));
}

Result<std::vector<ValidatedRow>> predict_gemm_with(const CsvTable& table,
                                                    const std::string& constants) {
  MW_ASSIGN_OR_RETURN(const OperatorFits fits, read_operator_fits(constants, "gemm"));
  return predict_gemm_rows(table, fits);
}

}  // namespace meshwright
