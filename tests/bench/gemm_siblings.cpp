// SPDX-License-Identifier: Apache-2.0
// gemm_siblings TABLE: predicts each device's matmuls from the constants of its architecture's
// nearest other device, scaled by data sheets, as a device without measurements is priced. Prints a
// row per device and type; exits 1 where a median |error| of a set that is not marked exceeds 10 %.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "sim/core/quantile.h"
#include "sim/cost/operators/operator_fits.h"
#include "sim/validate/operator_family.h"

namespace meshwright {
namespace {

constexpr double kBar = 0.10;

/// |error| per source ("gemm bf16 (constants of h200)") of the rows of one device.
std::map<std::string, std::vector<double>> errors_of(const std::vector<ValidatedRow>& rows,
                                                     const std::string& device) {
  std::map<std::string, std::vector<double>> out;
  for (const ValidatedRow& r : rows) {
    if (!r.skipped.empty() || !r.predicted || !r.measured) continue;
    const DeviceSpec* spec = find_builtin_gpu(r.device);
    if (spec == nullptr || spec->name != device) continue;
    out[r.source].push_back(std::abs(*r.predicted / *r.measured - 1));
  }
  return out;
}

int judge(const CsvTable& table) {
  const OperatorFits& all = builtin_operator_fits("gemm");
  std::map<std::string, bool> devices;
  for (const OperatorFit& f : all.fits) devices[f.device] = true;
  const auto document = std::filesystem::temp_directory_path() / "meshwright_gemm_siblings.json";
  bool good = true;
  for (const auto& [device, unused] : devices) {
    OperatorFits others = all;
    std::erase_if(others.fits, [&](const OperatorFit& f) { return f.device == device; });
    std::ofstream(document) << operator_fits_text(others);
    const auto rows = predict_gemm_with(table, document.string());
    if (!rows) {
      fmt::print(stderr, "{}\n", to_string(rows.error()));
      return 2;
    }
    const auto errors = errors_of(*rows, device);
    if (errors.empty())
      fmt::print("{:<14} no other device of its architecture is measured\n", device);
    for (auto [source, e] : errors) {
      std::sort(e.begin(), e.end());
      const double median = nearest_rank_quantile(e, 0.5);
      const bool marked = source.find("(marked)") != std::string::npos;
      fmt::print("{:<14} {:<44} {:>6} rows, median {:>5.1f} %, p90 {:>5.1f} %\n",
                 device,
                 source,
                 e.size(),
                 100 * median,
                 100 * nearest_rank_quantile(e, 0.9));
      good = good && (marked || median <= kBar);
    }
  }
  std::filesystem::remove(document);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace meshwright

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: gemm_siblings TABLE\n", stderr);
    return 2;
  }
  const auto table = meshwright::CsvTable::read(argv[1]);
  if (!table) {
    std::fputs((meshwright::to_string(table.error()) + "\n").c_str(), stderr);
    return 2;
  }
  return meshwright::judge(*table);
}
