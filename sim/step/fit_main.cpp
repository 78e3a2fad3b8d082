// SPDX-License-Identifier: Apache-2.0
// fit-steps TABLE...: refits models/fits/frameworks.json and writes the document to stdout; the
// constants and how two halves, split by source, model and device, judge each other, to stderr.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "sim/core/hash.h"
#include "sim/step/step_fit.h"

namespace meshwright {
namespace {

bool in_half(const TrainingCase& c, int half) {
  size_t h = 1469598103934665603ULL;  // FNV-1a: the split must not change between builds
  for (const char ch : c.source + "|" + c.model + "|" + c.device) {
    h = (h ^ static_cast<unsigned char>(ch)) * 1099511628211ULL;
  }
  return static_cast<int>((h >> 20) & 1U) == half;
}

void judge(const char* name,
           const std::vector<const CsvTable*>& tables,
           const StepConstants& constants,
           int half) {
  for (size_t n = 1; n <= tables.size(); ++n) {
    std::vector<double> errors;
    for (size_t t = 0; t < n; ++t) {
      for (size_t i = 0; i < tables[t]->num_rows(); ++i) {
        const TrainingCase c = step_case(*tables[t], i);
        if (!c.skipped.empty() || (half >= 0 && !in_half(c, half))) continue;
        errors.push_back(std::abs(predict_case(c, constants).total_s() / *c.measured_s - 1));
      }
    }
    if (errors.empty()) continue;
    std::sort(errors.begin(), errors.end());
    double mean = 0;
    for (const double e : errors) mean += e / static_cast<double>(errors.size());
    fmt::print(stderr,
               "{}, first {} tables: {} rows, median {:.1f} %, mean {:.1f} %, p90 {:.1f} %\n",
               name,
               n,
               errors.size(),
               100 * errors[errors.size() / 2],
               100 * mean,
               100 * errors[errors.size() * 9 / 10]);
  }
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
  for (const std::string& line : report->lines) fmt::print(stderr, "{}\n", line);
  judge("fitted on all", refs, report->constants, -1);
  const auto text = fit_steps(refs);
  if (!text) return 2;
  fmt::print("{}", *text);
  return 0;
}

}  // namespace
}  // namespace meshwright

int main(int argc, char** argv) { return meshwright::fit_main(argc, argv); }
