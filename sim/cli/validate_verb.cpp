// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/cli/verbs.h"
#include "sim/validate/validation.h"

namespace meshwright::cli {
namespace {

struct ValidateOptions {
  std::vector<std::string> files;
  std::string constants;
  bool summary_only = false;
};

Json number_or_null(const std::optional<double>& x) { return x ? Json(*x) : Json(nullptr); }

void print_validation_json(const ValidationReport& report) {
  Json rows = Json::array();
  for (const ValidatedRow& r : report.rows) {
    rows.push_back({{"file", r.file},
                    {"line", r.line},
                    {"id", r.id},
                    {"source", r.source},
                    {"device", r.device},
                    {"predicted", number_or_null(r.predicted)},
                    {"measured", number_or_null(r.measured)},
                    {"unit", r.unit},
                    {"rel_err", number_or_null(r.rel_err())},
                    {"bound_low", number_or_null(r.bound_low)},
                    {"bound_high", number_or_null(r.bound_high)},
                    {"skipped", r.skipped.empty() ? Json(nullptr) : Json(r.skipped)}});
  }
  Json summary = Json::array();
  for (const ValidationSummary& s : report.summary) {
    summary.push_back({{"source", s.source},
                       {"device", s.device},
                       {"unit", s.unit},
                       {"count", s.count},
                       {"median", s.median},
                       {"mean", s.mean},
                       {"p90", s.p90},
                       {"bias", s.bias},
                       {"rank_correlation", number_or_null(s.rank_correlation)},
                       {"coverage", number_or_null(s.coverage)}});
  }
  print_json({{"schema_version", kOutputSchemaVersion},
              {"family", report.family},
              {"rows", std::move(rows)},
              {"summary", std::move(summary)},
              {"layout_tau", number_or_null(report.layout_tau)},
              {"layout_regret", number_or_null(report.layout_regret)}});
}

std::string percent(double x) { return fmt::format("{:+.1f} %", 100 * x); }

void print_validation_rows(const ValidationReport& report, bool name_files) {
  for (const ValidatedRow& r : report.rows) {
    const std::string name =
        fmt::format("{}line {} {}", name_files ? r.file + ": " : "", r.line, r.id);
    if (!r.skipped.empty()) {
      fmt::print("{}: skipped: {}\n", name, r.skipped);
      continue;
    }
    fmt::print("{}: predicted {:.5g} {}, measured {}, error {}\n",
               name,
               *r.predicted,
               r.unit,
               r.measured ? fmt::format("{:.5g}", *r.measured) : "-",
               r.rel_err() ? percent(*r.rel_err()) : "-");
  }
}

Result<int> run_validate(const ValidateOptions& o, bool json) {
  MW_ASSIGN_OR_RETURN(const ValidationReport report, validate_files(o.files, o.constants));
  if (json) {
    print_validation_json(report);
    return 0;
  }
  if (!o.summary_only) print_validation_rows(report, o.files.size() > 1);
  int64_t skipped = 0;
  for (const ValidatedRow& r : report.rows) skipped += r.skipped.empty() ? 0 : 1;
  fmt::print("{}: {} rows of family {}, {} skipped\n\n",
             fmt::join(o.files, ", "),
             report.rows.size(),
             report.family,
             skipped);
  fmt::print("{:<42} {:<22} {:<4} {:>6} {:>8} {:>8} {:>8} {:>8} {:>6} {:>7}\n",
             "source",
             "device",
             "unit",
             "rows",
             "median",
             "mean",
             "p90",
             "bias",
             "tau",
             "in 80%");
  for (const ValidationSummary& s : report.summary) {
    fmt::print(
        "{:<42.42} {:<22.22} {:<4} {:>6} {:>6.1f} % {:>6.1f} % {:>6.1f} % {:>8} {:>6} {:>7}\n",
        s.source,
        s.device,
        s.unit,
        s.count,
        100 * s.median,
        100 * s.mean,
        100 * s.p90,
        percent(s.bias),
        s.rank_correlation ? fmt::format("{:.2f}", *s.rank_correlation) : "-",
        s.coverage ? fmt::format("{:.0f} %", 100 * *s.coverage) : "-");
  }
  if (report.layout_tau) {
    fmt::print(
        "\nlayouts of one model and cluster: Kendall tau {:.2f}, mean regret of the "
        "predicted best {:.1f} %\n",
        *report.layout_tau,
        100 * report.layout_regret.value_or(0));
  }
  return 0;
}

}  // namespace

Verb validate_verb(CLI::App& app) {
  Verb verb = make_verb(
      app, "validate", "The cost model against CSVs of measurements, row by row and in sum");
  auto o = std::make_shared<ValidateOptions>();
  verb.app
      ->add_option(
          "files", o->files, "CSV whose header names the family; rows of several files are pooled")
      ->required();
  verb.app->add_option(
      "--constants", o->constants, "Document of `meshwright fit` instead of the built-in one");
  verb.app->add_flag("--summary", o->summary_only, "Leave out the rows");
  verb.run = [o, json = verb.json] { return run_validate(*o, *json); };
  return verb;
}

}  // namespace meshwright::cli
