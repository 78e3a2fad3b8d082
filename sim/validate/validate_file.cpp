// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/nccl_tests_log.h"
#include "sim/validate/families.h"

namespace meshwright {

Result<ValidationReport> validate_file(const std::string& path, const std::string& constants) {
  MW_ASSIGN_OR_RETURN(const CsvTable table, read_measurement_table(path));
  for (const ValidationFamily& family : validation_families()) {
    if (!table.has_columns(family.columns)) continue;
    ValidationReport report{.family = family.name};
    if (constants.empty()) {
      report.rows = family.predict(table);
    } else if (family.predict_with != nullptr) {
      MW_ASSIGN_OR_RETURN(report.rows, family.predict_with(table, constants));
    } else {
      return Error{.where = "--constants",
                   .field = "constants",
                   .value = constants,
                   .rule = std::string("cannot replace those of family ") + family.name};
    }
    summarise(report);
    return report;
  }
  std::string known;
  for (const ValidationFamily& family : validation_families()) {
    known += known.empty() ? "" : "; ";
    known += std::string(family.name) + ":";
    for (const char* column : family.columns) known += std::string(" ") + column;
  }
  return Error{.where = path,
               .field = "header",
               .rule = "matches no family of measurements",
               .remedy = "the columns of one of them must be there - " + known};
}

}  // namespace meshwright
