// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/core/text.h"

namespace meshwright::cli {

std::string terms_text(const StepReport& report) {
  std::vector<Term> order;
  for (int t = 0; t < kNumTerms; ++t) {
    if (report.terms[static_cast<size_t>(t)].v != 0) order.push_back(static_cast<Term>(t));
  }
  std::stable_sort(
      order.begin(), order.end(), [&](Term a, Term b) { return report[a] > report[b]; });
  std::string text;
  for (const Term t : order) {
    text += fmt::format("  {:<14} {:>10} {:>6.1f} %\n",
                        key(t),
                        show(report[t]),
                        100 * (report[t] / report.step_time));
  }
  return text + fmt::format("  {:<14} {:>10}\n", "step_time_s", show(report.step_time));
}

std::string memory_text(const StepReport& report, Bytes capacity) {
  std::string text;
  for (int t = 0; t < kNumMemoryTerms; ++t) {
    const auto term = static_cast<MemoryTerm>(t);
    text += fmt::format("  {:<18} {:>11} {:>6.1f} %\n",
                        key(term),
                        show(report[term]),
                        100 * (report[term] / report.peak_memory));
  }
  text += fmt::format("  {:<18} {:>11}\n", "peak", show(report.peak_memory));
  Bytes upper = report.peak_memory;
  if (report.memory_bound) {
    const MemoryBound& b = *report.memory_bound;
    upper = b.upper;
    const auto line = [&](const char* name, Bytes bytes, const std::string& what) {
      if (bytes.v > 0) text += fmt::format("  {:<18} {:>11} {}\n", name, show(bytes), what);
    };
    line("+ fragmentation", b.fragmentation, "of the allocator, and what the model misses");
    line("+ workspace", b.workspace, "of libraries");
    line("+ communicators",
         b.communicators,
         fmt::format("buffers of {:.0f} groups", b.num_communicators));
  }
  text +=
      fmt::format("  {:<18} {:>11} of {} per device ({})\n",
                  "upper bound",
                  show(upper),
                  show(capacity),
                  upper <= capacity ? "fits" : fmt::format("{} too much", show(upper - capacity)));
  if (report.memory_bound) {
    const MemoryBound& b = *report.memory_bound;
    text += b.coverage < 1 ? fmt::format("  such bounds held for {:.0f} of 100 measured peaks\n",
                                         100 * b.coverage)
                           : std::string("  exact: requested bytes of a CPU rank\n");
    text += fmt::format(
        "  {:<18} {:>11} while Adam has no moments yet\n", "first step", show(b.first_step_peak));
    text += fmt::format("  {:<18} {:>11}, with {} copied to the host\n",
                        "while saving",
                        show(b.save_peak),
                        show(b.snapshot));
  }
  return text;
}

std::optional<double> ComparedTerm::rel_err() const {
  if (measured == 0) return std::nullopt;
  return (predicted - measured) / measured;
}

std::vector<ComparedTerm> compare_reports(const StepReport& predicted, const StepReport& measured) {
  std::vector<ComparedTerm> out;
  out.push_back({"step_time_s", "s", predicted.step_time.v, measured.step_time.v});
  out.push_back({"peak_memory_bytes", "bytes", predicted.peak_memory.v, measured.peak_memory.v});
  for (size_t t = 0; t < kNumTerms; ++t) {
    out.push_back(
        {std::string(key(static_cast<Term>(t))), "s", predicted.terms[t].v, measured.terms[t].v});
  }
  for (size_t t = 0; t < kNumMemoryTerms; ++t) {
    out.push_back({std::string(key(static_cast<MemoryTerm>(t))),
                   "bytes",
                   predicted.memory[t].v,
                   measured.memory[t].v});
  }
  return out;
}

std::string comparison_text(const std::vector<ComparedTerm>& terms) {
  std::string text =
      fmt::format("{:<20} {:>12} {:>12} {:>9}\n", "term", "predicted", "measured", "error");
  for (const ComparedTerm& t : terms) {
    if (t.predicted == 0 && t.measured == 0) continue;
    const bool time = t.unit == "s";
    const auto value = [&](double x) { return time ? show(Seconds{x}) : show(Bytes{x}); };
    const auto e = t.rel_err();
    text += fmt::format("{:<20} {:>12} {:>12} {:>9}\n",
                        t.name,
                        value(t.predicted),
                        value(t.measured),
                        e ? fmt::format("{:+.1f} %", 100 * *e) : "-");
  }
  return text;
}

}  // namespace meshwright::cli
