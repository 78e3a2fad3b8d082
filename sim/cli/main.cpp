// SPDX-License-Identifier: Apache-2.0
// meshwright: plans a training layout, and starts the workers that train on it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "sim/cli/verbs.h"
#include "sim/core/version.h"
#include "sim/spec/builtin_documents.h"

namespace meshwright::cli {
namespace {

Environment read_environment() {
  Environment env;
  env.machine = read_machine_facts();
  std::error_code ec;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ec);
  env.worker_program = (self.parent_path() / "meshwright-worker").string();
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path base =
      cache != nullptr && *cache != '\0'
          ? std::filesystem::path(cache)
          : std::filesystem::path(home != nullptr ? home : "/tmp") / ".cache";
  env.calibration_dir = (base / "meshwright").string();
  env.interactive = isatty(STDERR_FILENO) == 1;
  return env;
}

void print_builtins() {
  for (const auto& [title, folder] : {std::pair{"models", "llm"},
                                      {"devices (use as COUNTxDEVICE)", "hardware"},
                                      {"workloads", "workloads"}}) {
    fmt::print("{}:\n", title);
    for (const std::string& name : builtin_names(folder)) fmt::print("  {}\n", name);
  }
}

int run(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  const Environment env = read_environment();
  CLI::App app("Plans a cluster layout for training a large language model, and trains on it.",
               "meshwright");
  app.set_version_flag("--version", std::string("meshwright ") + kVersion);
  bool list = false;
  app.add_flag("--list", list, "Built-in models, devices and workloads");
  app.require_subcommand(0, 1);
  const std::vector<Verb> verbs = {plan_verb(app, env),
                                   advise_verb(app, env),
                                   explain_verb(app, env),
                                   simulate_verb(app, env),
                                   run_verb(app, env),
                                   compare_verb(app, env),
                                   verify_verb(app, env),
                                   validate_verb(app),
                                   fit_verb(app, env),
                                   calibrate_verb(app, env),
                                   tokenize_verb(app, env)};
  const bool json_wanted = std::any_of(
      argv + 1, argv + argc, [](const char* a) { return std::string_view(a) == "--json"; });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    print_errors(
        {Error{.where = "command line", .rule = e.what(), .remedy = "see meshwright --help"}},
        json_wanted);
    return static_cast<int>(ErrorCode::kBadInput);
  }
  if (list) {
    print_builtins();
    return 0;
  }
  for (const Verb& verb : verbs) {
    if (!verb.app->parsed()) continue;
    const Result<int> status = verb.run();
    if (status) return *status;
    print_errors({status.error()}, *verb.json);
    return static_cast<int>(status.error().code);
  }
  fmt::print("{}", app.help());
  return 0;
}

}  // namespace
}  // namespace meshwright::cli

int main(int argc, char** argv) { return meshwright::cli::run(argc, argv); }
