// A user's own nccl-tests output as a table of collectives.
//
// Reads: what all_reduce_perf and its sisters print, or write with --json (`-J`). Feeds:
// collective_rows.h, hence `meshwright validate` and `meshwright fit`. Only size and out-of-place
// time are taken: busbw is algbw times (n-1)/n-like factors and no speed of a link (nccl#1455,
// nccl-tests#212); it is not imported.
//
// The group is read from the "# Rank" lines: ranks, hosts and device name. The device decides the
// link, since the log does not name it.
#pragma once

#include <string>
#include <string_view>

#include "sim/core/result.h"
#include "sim/validate/csv_table.h"

namespace meshwright {

/// Whether `text` looks like an nccl-tests log or its JSON.
[[nodiscard]] bool is_nccl_tests_output(std::string_view text);

/// Rows gpu, interconnect, ngpus, op, bytes, time_us, source, notes; several runs may follow each
/// other in one log. Line numbers of the table are those of the log. Errors: no result row; an
/// operation, a device or a number of ranks that the text does not tell.
[[nodiscard]] Result<CsvTable> parse_nccl_tests_output(std::string_view text,
                                                       const std::string& origin);

/// A CSV, or nccl-tests output in either form.
[[nodiscard]] Result<CsvTable> read_measurement_table(const std::string& path);

}  // namespace meshwright
