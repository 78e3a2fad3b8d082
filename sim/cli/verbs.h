// The verbs of the command line, one source file each.
#pragma once

#include "sim/cli/verb.h"

namespace meshwright::cli {

Verb plan_verb(CLI::App& app, const Environment& env);
Verb advise_verb(CLI::App& app, const Environment& env);
Verb explain_verb(CLI::App& app, const Environment& env);
Verb simulate_verb(CLI::App& app, const Environment& env);
Verb tokenize_verb(CLI::App& app, const Environment& env);
Verb calibrate_verb(CLI::App& app, const Environment& env);
Verb run_verb(CLI::App& app, const Environment& env);
Verb compare_verb(CLI::App& app, const Environment& env);
Verb verify_verb(CLI::App& app, const Environment& env);
Verb validate_verb(CLI::App& app);
Verb fit_verb(CLI::App& app, const Environment& env);

}  // namespace meshwright::cli
