// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/attention_table.h"
#include "sim/validate/operator_family.h"

namespace meshwright {
namespace {

std::optional<double> attention_time_us(const AttentionRow& row, const OperatorFit& fit) {
  const GpuFacts gpu = gpu_facts(*row.spec);
  if (row.decodes()) {
    const auto c = constants_from(decode_model_constants(), fit.constants);
    if (!c) return std::nullopt;
    return decode_time_us(*c, gpu, row.shape);
  }
  const auto c = constants_from(prefill_model_constants(), fit.constants);
  if (!c) return std::nullopt;
  return prefill_time_us(*c, gpu, row.shape);
}

std::vector<ValidatedRow> predict_attention_rows(const CsvTable& table, const OperatorFits& fits) {
  std::vector<ValidatedRow> result;
  for (const AttentionRow& row : read_attention_rows(table)) {
    const bool continues = row.decodes() && row.shape.cached > 0;
    ValidatedRow& out = result.emplace_back(
        validated_operator_row(row, continues ? "attention decode" : "attention prefill"));
    if (!out.skipped.empty()) continue;
    const char* kind = row.decodes() ? "decode" : "prefill";
    const std::optional<ChosenFit> chosen = choose_fit(fits, *row.spec, kind);
    if (!chosen) {
      out.skipped =
          std::string("no constants of ") + kind + " for architecture " + row.spec->architecture;
      continue;
    }
    const std::optional<double> time_us = attention_time_us(row, *chosen->fit);
    if (!time_us) {
      out.skipped = "the constants of " + chosen->fit->device + " are not those of this model";
      continue;
    }
    set_operator_prediction(out, *chosen, *time_us);
  }
  return result;
}

}  // namespace

std::vector<ValidatedRow> predict_attention(const CsvTable& table) {
  return predict_attention_rows(table, builtin_operator_fits("attention"));
}

Result<std::vector<ValidatedRow>> predict_attention_with(const CsvTable& table,
                                                         const std::string& constants) {
  MW_ASSIGN_OR_RETURN(const OperatorFits fits, read_operator_fits(constants, "attention"));
  return predict_attention_rows(table, fits);
}

}  // namespace meshwright
