// SPDX-License-Identifier: Apache-2.0
// step_fit_halves TABLE...: fits the step constants on one half of the tables, split by source,
// model and device, and judges them on the other, both ways; then the fit on all rows. Prints
// accuracy and each constant with its error.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "sim/core/hash.h"
#include "sim/fit/step_fit.h"

namespace meshwright {
namespace {

bool in_half(const TrainingCase& c, int half) {
  constexpr uint64_t kSplitSeed = 1469598103934665603ULL;
  const uint64_t h = fnv1a(c.source + "|" + c.model + "|" + c.device, kSplitSeed);
  return static_cast<int>((h >> 20) & 1U) == half;
}

struct Errors {
  std::vector<double> values;

  void print(const std::string& name) {
    if (values.empty()) return;
    std::sort(values.begin(), values.end());
    double mean = 0;
    for (const double e : values) mean += e / static_cast<double>(values.size());
    fmt::print(stderr,
               "  {}: {} rows, median {:.1f} %, mean {:.1f} %, p90 {:.1f} %\n",
               name,
               values.size(),
               100 * values[values.size() / 2],
               100 * mean,
               100 * values[values.size() * 9 / 10]);
  }
};

/// `half` < 0: every row.
void judge(const char* name,
           const std::vector<const CsvTable*>& tables,
           const StepConstants& constants,
           int half) {
  fmt::print(stderr, "{}\n", name);
  Errors all;
  std::map<std::string, Errors> by_source;
  for (size_t t = 0; t < tables.size(); ++t) {
    Errors table;
    for (size_t i = 0; i < tables[t]->num_rows(); ++i) {
      const TrainingCase c = step_case(*tables[t], i);
      if (!c.skipped.empty() || (half >= 0 && !in_half(c, half))) continue;
      const double error = std::abs(predict_case(c, constants).total_s() / *c.measured_s - 1);
      table.values.push_back(error);
      all.values.push_back(error);
      by_source[c.source + ", " + c.device].values.push_back(error);
    }
    table.print("table " + std::to_string(t + 1));
  }
  all.print("all tables");
  for (auto& [source, errors] : by_source) errors.print(source);
}

int fit_main(int argc, char** argv) {
  std::vector<CsvTable> tables;
  std::vector<const CsvTable*> refs;
  tables.reserve(static_cast<size_t>(argc));
  for (int i = 1; i < argc; ++i) {
    Result<CsvTable> table = CsvTable::read(argv[i]);
    if (!table) {
      fmt::print(stderr, "{}\n", to_string(table.error()));
      return 2;
    }
    tables.push_back(std::move(*table));
    refs.push_back(&tables.back());
  }
  for (int half = 0; half < 2; ++half) {
    const auto report =
        fit_step_constants(refs, [half](const TrainingCase& c) { return in_half(c, half); });
    if (!report) return 2;
    judge(half == 0 ? "fitted on half 0, judged on half 1" : "fitted on half 1, judged on half 0",
          refs,
          report->constants,
          1 - half);
  }
  const auto report = fit_step_constants(refs);
  if (!report) return 2;
  for (const std::string& line : report->lines) fmt::print("{}\n", line);
  judge("fitted on all", refs, report->constants, -1);
  return 0;
}

}  // namespace
}  // namespace meshwright

int main(int argc, char** argv) { return meshwright::fit_main(argc, argv); }
