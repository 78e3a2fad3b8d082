// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/cli/verbs.h"
#include "sim/fit/collective_fit.h"
#include "sim/fit/nccl_tests_log.h"
#include "sim/fit/operator_fit.h"
#include "sim/fit/step_fit.h"

namespace meshwright::cli {
namespace {

struct FitVerbOptions {
  std::vector<std::string> files;
  std::string output, device, origin;
};

void print_fits(const OperatorFits& fits) {
  fmt::print("{:<16} {:<10} {:>6} {:>10} {:>8} {:>8} {:>8} {:>8}\n",
             "device",
             "kind",
             "rows",
             "constants",
             "held out",
             "median",
             "p90",
             "bias");
  for (const OperatorFit& fit : fits.fits) {
    fmt::print("{:<16} {:<10} {:>6} {:>10} {:>8} {:>6.1f} % {:>6.1f} % {:>+6.1f} %\n",
               fit.device,
               fit.kind,
               fit.rows,
               fit.constants.size(),
               fit.held_out.rows,
               100 * fit.held_out.median,
               100 * fit.held_out.p90,
               100 * fit.held_out.bias);
  }
}

/// The document of a family that is fitted as a whole: collectives, or training steps.
Result<std::optional<std::string>> fit_whole_family(const std::vector<NamedTable>& tables) {
  const auto is_collectives = [](const NamedTable& t) {
    return t.table.has_columns({"time_us", "ngpus"});
  };
  const auto is_steps = [](const NamedTable& t) {
    return t.table.has_column("measured_step_s") || t.table.has_columns({"case", "it"});
  };
  if (tables.size() == 1 && is_collectives(tables.front())) {
    MW_ASSIGN_OR_RETURN(std::string text, fit_collectives(tables.front().table));
    return std::optional(std::move(text));
  }
  if (std::all_of(tables.begin(), tables.end(), is_steps)) {
    std::vector<const CsvTable*> pointers;
    for (const NamedTable& t : tables) pointers.push_back(&t.table);
    MW_ASSIGN_OR_RETURN(std::string text, fit_steps(pointers));
    return std::optional(std::move(text));
  }
  return std::optional<std::string>();
}

Result<int> run_fit(const FitVerbOptions& o, bool json, const Environment& env) {
  std::vector<NamedTable> tables;
  for (const std::string& file : o.files) {
    MW_ASSIGN_OR_RETURN(CsvTable table, read_measurement_table(file));
    tables.push_back({file, std::move(table)});
  }
  MW_ASSIGN_OR_RETURN(const std::optional<std::string> whole, fit_whole_family(tables));
  if (whole) {
    if (o.output.empty() || json) fmt::print("{}\n", *whole);
    if (!o.output.empty()) MW_RETURN_IF_ERROR(write_text_file(o.output, *whole));
    return 0;
  }
  OperatorFits fits;
  {
    ProgressLine line(env.interactive);
    MW_ASSIGN_OR_RETURN(
        fits,
        fit_operator_tables(tables,
                            {.device = o.device,
                             .origin = o.origin,
                             .progress = [&](const std::string& device, const std::string& kind) {
                               line.show(fmt::format("fitting {} {}", device, kind));
                             }}));
  }
  const std::string text = operator_fits_text(fits);
  if (!o.output.empty()) MW_RETURN_IF_ERROR(write_text_file(o.output, text));
  if (json) {
    MW_ASSIGN_OR_RETURN(const Json document, parse_json(text, "fit"));
    print_json(document);
  } else {
    print_fits(fits);
  }
  return 0;
}

}  // namespace

Verb fit_verb(CLI::App& app, const Environment& env) {
  Verb verb =
      make_verb(app, "fit", "Constants of the cost model, fitted to tables of measured times");
  auto o = std::make_shared<FitVerbOptions>();
  verb.app
      ->add_option(
          "files",
          o->files,
          "Tables of one family: matmul, attention, collectives (or nccl-tests output), training")
      ->required();
  verb.app->add_option("--device", o->device, "Only this device of the table");
  verb.app->add_option("--origin", o->origin, "Where the measurements come from");
  verb.app->add_option("-o,--output", o->output, "Document to write, for validate --constants");
  verb.run = [o, json = verb.json, &env] { return run_fit(*o, *json, env); };
  return verb;
}

}  // namespace meshwright::cli
