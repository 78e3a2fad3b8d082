// The families of measurements: each turns a table into one ValidatedRow per measurement, in file
// order. A new family is one function here and one line in families().
#pragma once

#include <vector>

#include "sim/validate/validation.h"

namespace meshwright {

/// A family is recognised by columns that only it has.
struct ValidationFamily {
  const char* name;
  std::vector<const char*> columns;
  std::vector<ValidatedRow> (*predict)(const CsvTable&);
  /// The same with the constants of a user's document; null where a family has none to replace.
  Result<std::vector<ValidatedRow>> (*predict_with)(const CsvTable&,
                                                    const std::string& constants) = nullptr;
};

[[nodiscard]] const std::vector<ValidationFamily>& validation_families();

}  // namespace meshwright
