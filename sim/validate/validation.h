// Validation: the cost model against a table of measurements, row by row.
//
// Reads: CSVs of one family, recognised by its header (families.h). Feeds:
// `meshwright validate`. A row is predicted from its own columns alone; one that lacks a field, or
// that no model covers, is skipped with the reason, and never stops the others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/result.h"
#include "sim/validate/csv_table.h"

namespace meshwright {

/// One row of a file.
struct ValidatedRow {
  std::string file;    ///< Its path as given.
  int64_t line = 0;    ///< Of the file; the header is line 1.
  std::string id;      ///< The row's own, or its key columns.
  std::string source;  ///< Whose measurement, or which kernel family.
  std::string device;
  std::string unit;  ///< Of predicted, measured and the bounds.
  std::optional<double> predicted;
  std::optional<double> measured;
  std::optional<double> bound_low;   ///< 80 % interval of the prediction;
  std::optional<double> bound_high;  ///< alone where it bounds a peak of memory (95 %).
  std::string skipped;     ///< Why there is no prediction or no comparison; empty when there is.
  std::string rank_group;  ///< Rows whose order matters: layouts of one model on one cluster.

  [[nodiscard]] bool compared() const { return predicted && measured && skipped.empty(); }
  /// predicted / measured - 1.
  [[nodiscard]] std::optional<double> rel_err() const;
};

/// Figures over the compared rows of one (source, device).
struct ValidationSummary {
  std::string source;  ///< "all" over every source.
  std::string device;  ///< "all" over every device.
  std::string unit;    ///< Rows of different units are never pooled.
  int64_t count = 0;
  double median = 0;  ///< Of |rel_err|.
  double mean = 0;    ///< Of |rel_err|.
  double p90 = 0;     ///< Of |rel_err|, nearest rank.
  double bias = 0;    ///< Median of rel_err, signed.
  std::optional<double>
      rank_correlation;            ///< Kendall's tau-b of predicted and measured, >= 2 rows.
  std::optional<double> coverage;  ///< Share of measurements inside their 80 % interval.
};

struct ValidationReport {
  std::string family;  ///< "training", "memory", "gemm", "attention", "collectives".
  std::vector<ValidatedRow> rows;
  std::vector<ValidationSummary> summary;  ///< By source, device and unit; the pooled ones last.
  std::optional<double> layout_tau;        ///< Mean Kendall tau inside rank groups of >= 3 rows.
  std::optional<double> layout_regret;  ///< Mean of measured(best predicted) / best measured - 1.
};

/// Predicts every row of `paths`, of one family, and pools them. Errors: an unreadable file; a
/// header of no known family (the message lists the families and their columns), or of another
/// family than the first file's. `constants`, if not empty, is a document of
/// `meshwright fit` to use instead of the built-in constants.
[[nodiscard]] Result<ValidationReport> validate_files(const std::vector<std::string>& paths,
                                                      const std::string& constants = "");

/// Fills `summary`, `layout_tau` and `layout_regret` from `rows`.
void summarise(ValidationReport& report);

/// Kendall's tau-b; nothing for fewer than two pairs or when either side is constant.
[[nodiscard]] std::optional<double> kendall_tau(const std::vector<double>& a,
                                                const std::vector<double>& b);

}  // namespace meshwright
