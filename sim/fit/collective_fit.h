// Fits the constants of models/fits/collectives.json to measured collectives.
//
// Feeds: `meshwright fit`. Per link generation, one least-squares fit of log(predicted / measured)
// (log_fit.h) over all devices, operations and group sizes of that generation. Held-out accuracy:
// the groups (device, ranks, op) are dealt to eight folds; each fold is predicted by constants
// fitted on the other seven, so that no group is judged by constants that saw it. The final set is
// fitted on all groups.
//
// Used are rows that are not marked and not timed from the host. The exception is in-switch
// all-reduce, where a generation has no other rows: host-timed ones then enter with one additive
// constant for the host, fitted with the rest and thrown away.
#pragma once

#include <string>

#include "sim/core/result.h"
#include "sim/validate/csv_table.h"

namespace meshwright {

/// The document's text. Errors: a table without a usable row.
[[nodiscard]] Result<std::string> fit_collectives(const CsvTable& table);

}  // namespace meshwright
