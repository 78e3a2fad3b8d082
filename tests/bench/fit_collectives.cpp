// SPDX-License-Identifier: Apache-2.0
//
// Fits the constants of models/fits/collectives.json: fit_collectives TABLE > collectives.json
#include <cstdio>

#include "sim/fit/collective_fit.h"
#include "sim/fit/nccl_tests_log.h"

int main(int argc, char** argv) {
  using namespace meshwright;
  if (argc != 2) {
    std::fprintf(stderr, "usage: fit_collectives CSV-OR-NCCL-TESTS-LOG\n");
    return 2;
  }
  const Result<CsvTable> table = read_measurement_table(argv[1]);
  const Result<std::string> fitted =
      table ? fit_collectives(*table) : Result<std::string>(table.error());
  if (!fitted) {
    std::fprintf(stderr, "%s\n", to_string(fitted.error()).c_str());
    return static_cast<int>(fitted.error().code);
  }
  std::fputs(fitted->c_str(), stdout);
  return 0;
}
