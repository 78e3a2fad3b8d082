// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/nccl_tests_log.h"
#include "sim/validate/families.h"

namespace meshwright {
namespace {

Result<const ValidationFamily*> family_of(const CsvTable& table, const std::string& path) {
  std::string known;
  for (const ValidationFamily& family : validation_families()) {
    if (table.has_columns(family.columns)) return &family;
    known += known.empty() ? "" : "; ";
    known += std::string(family.name) + ":";
    for (const char* column : family.columns) known += std::string(" ") + column;
  }
  return Error{.where = path,
               .field = "header",
               .rule = "matches no family of measurements",
               .remedy = "the columns of one of them must be there - " + known};
}

Result<std::vector<ValidatedRow>> predict_rows(const ValidationFamily& family,
                                               const CsvTable& table,
                                               const std::string& constants) {
  if (constants.empty()) return family.predict(table);
  if (family.predict_with != nullptr) return family.predict_with(table, constants);
  return Error{.where = "--constants",
               .field = "constants",
               .value = constants,
               .rule = std::string("cannot replace those of family ") + family.name};
}

}  // namespace

Result<ValidationReport> validate_files(const std::vector<std::string>& paths,
                                        const std::string& constants) {
  ValidationReport report;
  for (const std::string& path : paths) {
    MW_ASSIGN_OR_RETURN(const CsvTable table, read_measurement_table(path));
    MW_ASSIGN_OR_RETURN(const ValidationFamily* family, family_of(table, path));
    if (!report.family.empty() && report.family != family->name) {
      return Error{.where = path,
                   .field = "family",
                   .value = family->name,
                   .rule = "differs from " + report.family + ", the family of " + paths.front(),
                   .remedy =
                       "files pooled in one report measure the same kind of thing; validate "
                       "this one by itself"};
    }
    report.family = family->name;
    MW_ASSIGN_OR_RETURN(std::vector<ValidatedRow> rows, predict_rows(*family, table, constants));
    for (ValidatedRow& row : rows) {
      row.file = path;
      report.rows.push_back(std::move(row));
    }
  }
  summarise(report);
  return report;
}

}  // namespace meshwright
