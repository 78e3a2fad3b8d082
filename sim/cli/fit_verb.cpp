// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "sim/cli/verbs.h"
#include "sim/fit/operator_fit.h"

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

Result<int> run_fit(const FitVerbOptions& o, bool json, const Environment& env) {
  OperatorFits fits;
  {
    ProgressLine line(env.interactive);
    MW_ASSIGN_OR_RETURN(
        fits,
        fit_operator_files(o.files,
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
      make_verb(app, "fit", "Constants of the operator models, fitted to a CSV of measured times");
  auto o = std::make_shared<FitVerbOptions>();
  verb.app->add_option("files", o->files, "CSV of matmul or of attention times")->required();
  verb.app->add_option("--device", o->device, "Only this device of the table");
  verb.app->add_option("--origin", o->origin, "Where the measurements come from");
  verb.app->add_option("-o,--output", o->output, "Document to write, for validate --constants");
  verb.run = [o, json = verb.json, &env] { return run_fit(*o, *json, env); };
  return verb;
}

}  // namespace meshwright::cli
