// Fits the constants of the operator models to a table of measurements.
//
// Reads: a CSV of matmul or attention times, recognised by its header. Feeds: `meshwright fit`,
// whose documents models/fits holds and `meshwright validate --constants` takes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/core/result.h"
#include "sim/cost/operators/operator_fits.h"
#include "sim/validate/csv_table.h"

namespace meshwright {

struct OperatorFitOptions {
  std::string device;  ///< Only this one; every device of the table when empty.
  std::string origin;  ///< Of the measurements, for the document; the files' names when empty.
  /// Called before each fit with its device and kind.
  std::function<void(const std::string& device, const std::string& kind)> progress;
};

/// A table and the file it came from, for messages and the document's origin.
struct NamedTable {
  std::string path;
  CsvTable table;
};

/// One fit per device and kind of the tables with rows enough. Errors: an unreadable file, a header
/// of no operator family or of another than the first file's, an unknown device, no device with
/// rows enough.
[[nodiscard]] Result<OperatorFits> fit_operator_files(const std::vector<std::string>& paths,
                                                      const OperatorFitOptions& options);

/// The same from tables that are at hand.
[[nodiscard]] Result<OperatorFits> fit_operator_tables(const std::vector<NamedTable>& tables,
                                                       const OperatorFitOptions& options);

/// Rows that a fit of about twenty constants needs at least, in both halves together.
inline constexpr size_t kMinFitRows = 100;

}  // namespace meshwright
