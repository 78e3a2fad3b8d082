// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "sim/cli/report_text.h"
#include "sim/cli/run_report.h"
#include "sim/cli/verbs.h"

namespace meshwright::cli {
namespace {

struct CompareOptions {
  std::vector<std::string> paths;
  double max_step_error = 0;
};

/// One run: its prediction against its measurement. Two: the first's measurement against the
/// second's.
Result<std::vector<ComparedTerm>> compared(const CompareOptions& o) {
  const auto report_path = [](const std::string& p) {
    std::error_code ec;
    return std::filesystem::is_directory(p, ec) ? p + "/report.json" : p;
  };
  MW_ASSIGN_OR_RETURN(const RunReport first, read_run_report(report_path(o.paths.front())));
  if (o.paths.size() == 2) {
    MW_ASSIGN_OR_RETURN(const RunReport second, read_run_report(report_path(o.paths.back())));
    return compare_reports(first.measured, second.measured);
  }
  if (!first.predicted) {
    return Error{.where = o.paths.front(),
                 .field = "predicted",
                 .value = "null",
                 .rule = "this run was not predicted: its plan file holds no prediction",
                 .remedy = "make the plan with meshwright plan -o"};
  }
  return compare_reports(*first.predicted, first.measured);
}

Result<int> run_compare(const CompareOptions& o, bool json) {
  if (o.paths.size() > 2) {
    return Error{.where = "compare",
                 .field = "paths",
                 .value = std::to_string(o.paths.size()),
                 .rule = "takes one run or two"};
  }
  MW_ASSIGN_OR_RETURN(const std::vector<ComparedTerm> terms, compared(o));
  if (json) {
    Json list = Json::array();
    for (const ComparedTerm& t : terms) {
      const auto e = t.rel_err();
      list.push_back({{"name", t.name},
                      {"unit", t.unit},
                      {"predicted", t.predicted},
                      {"measured", t.measured},
                      {"rel_err", e ? Json(*e) : Json(nullptr)}});
    }
    print_json({{"schema_version", kOutputSchemaVersion}, {"terms", std::move(list)}});
  } else {
    if (o.paths.size() == 2) fmt::print("predicted: {}; measured: {}\n", o.paths[0], o.paths[1]);
    fmt::print("{}", comparison_text(terms));
  }
  if (o.max_step_error > 0) {
    const auto e = terms.front().rel_err();
    if (e && std::abs(*e) > o.max_step_error) {
      fmt::print(stderr,
                 "meshwright: step time is {:+.1f} % off, more than {:.1f} %\n",
                 100 * *e,
                 100 * o.max_step_error);
      return static_cast<int>(ErrorCode::kNegative);
    }
  }
  return 0;
}

}  // namespace

Verb compare_verb(CLI::App& app, const Environment&) {
  Verb verb = make_verb(app, "compare", "Predicted against measured, term by term");
  auto o = std::make_shared<CompareOptions>();
  verb.app
      ->add_option("runs",
                   o->paths,
                   "A run's folder or report.json; with two, the second is taken as measured")
      ->required();
  verb.app->add_option("--max-step-error",
                       o->max_step_error,
                       "Exit 1 when the step time is off by more than this fraction");
  verb.run = [o, json = verb.json] { return run_compare(*o, *json); };
  return verb;
}

}  // namespace meshwright::cli
