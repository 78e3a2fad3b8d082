// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/operator_fit.h"

#include <algorithm>
#include <map>

#include "sim/fit/half_split_fit.h"
#include "sim/validate/gemm_table.h"

namespace meshwright {
namespace {

/// Splits the constants of a model into those that the fitter varies and those it chooses.
template <class Constants>
struct FittedModel {
  explicit FittedModel(std::span<const ModelConstant<Constants>> model) {
    problem.choices = {{}};
    for (const ModelConstant<Constants>& c : model) {
      if (c.kind == ConstantKind::kFitted) {
        fitted.push_back(&c);
        problem.parameters.push_back(
            {.name = c.name, .start = c.start, .low = c.low, .high = c.high});
        continue;
      }
      chosen.push_back(&c);
      std::vector<std::vector<double>> longer;
      for (const std::vector<double>& choice : problem.choices) {
        for (double x = c.low; x <= c.high; x *= 2) {
          longer.push_back(choice);
          longer.back().push_back(x);
        }
      }
      problem.choices = std::move(longer);
    }
  }

  [[nodiscard]] Constants constants(std::span<const double> values,
                                    std::span<const double> choice) const {
    Constants c;
    for (size_t i = 0; i < fitted.size(); ++i) c.*fitted[i]->value = values[i];
    for (size_t i = 0; i < chosen.size(); ++i) c.*chosen[i]->value = choice[i];
    return c;
  }

  [[nodiscard]] OperatorFit fit() const {
    const HalfSplitFit found = fit_half_split(problem);
    OperatorFit result{.rows = static_cast<int64_t>(problem.measured.size()),
                       .held_out = found.held_out};
    for (size_t i = 0; i < fitted.size(); ++i) {
      result.constants[fitted[i]->name] = found.values[i];
    }
    for (size_t i = 0; i < chosen.size(); ++i) {
      result.constants[chosen[i]->name] = found.choice[i];
    }
    return result;
  }

  HalfSplitProblem problem;
  std::vector<const ModelConstant<Constants>*> fitted, chosen;
};

/// Rows of one device and kind. Marked rows are left out, unless the whole set is marked.
template <class Row>
std::vector<const Row*> usable_rows(const std::vector<const Row*>& rows) {
  std::vector<const Row*> usable;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(usable), [](const Row* r) {
    return !r->marked;
  });
  return usable.empty() ? rows : usable;
}

template <class Row>
void set_measurements(HalfSplitProblem& problem, const std::vector<const Row*>& rows) {
  for (const Row* row : rows) {
    problem.measured.push_back(row->measured_us);
    problem.held_out.push_back(is_held_out(row->id));
  }
}

OperatorFit fit_gemm(GemmKind kind, const std::vector<const GemmRow*>& rows) {
  FittedModel<GemmConstants> model(gemm_model_constants(kind));
  set_measurements(model.problem, rows);
  const GpuFacts gpu = gpu_facts(*rows.front()->spec);
  model.problem.predict = [&](auto values, auto choice, auto indices, auto predicted) {
    const GemmConstants c = model.constants(values, choice);
    for (size_t i = 0; i < indices.size(); ++i) {
      predicted[i] = gemm_time_us(c, gpu, kind, rows[indices[i]]->shape);
    }
  };
  return model.fit();
}

/// Groups `rows` by device and kind and fits each group.
template <class Row, class KindOf, class Fit>
void fit_groups(const std::vector<Row>& rows,
                const OperatorFitOptions& options,
                const DeviceSpec* only,
                KindOf&& kind_of,
                Fit&& fit,
                OperatorFits& result) {
  std::map<std::pair<std::string, std::string>, std::vector<const Row*>> groups;
  for (const Row& row : rows) {
    if (!row.skipped.empty() || (only != nullptr && row.spec != only)) continue;
    groups[{row.spec->name, kind_of(row)}].push_back(&row);
  }
  for (const auto& [key, group] : groups) {
    const std::vector<const Row*> usable = usable_rows(group);
    if (usable.size() < kMinFitRows) continue;
    if (options.progress) options.progress(key.first, key.second);
    OperatorFit found = fit(usable);
    found.device = key.first;
    found.kind = key.second;
    result.fits.push_back(std::move(found));
  }
}

bool has_columns(const CsvTable& table, const std::vector<const char*>& columns) {
  return std::all_of(
      columns.begin(), columns.end(), [&](const char* c) { return table.has_column(c); });
}

}  // namespace

Result<OperatorFits> fit_operator_file(const std::string& path, const OperatorFitOptions& options) {
  MW_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::read(path));
  const DeviceSpec* only = nullptr;
  if (!options.device.empty()) {
    only = find_builtin_gpu(options.device);
    if (only == nullptr) {
      return Error{.where = "--device",
                   .field = "device",
                   .value = options.device,
                   .rule = "is not a built-in GPU or an alias of one",
                   .remedy = "see meshwright --list"};
    }
  }
  OperatorFits result{.origin = options.origin.empty() ? path : options.origin};
  if (has_columns(table, kGemmColumns)) {
    result.family = "gemm";
    fit_groups(
        read_gemm_rows(table),
        options,
        only,
        [](const GemmRow& row) { return std::string(to_string(row.kind)); },
        [](const std::vector<const GemmRow*>& rows) { return fit_gemm(rows.front()->kind, rows); },
        result);
  } else {
    return Error{.where = path,
                 .field = "header",
                 .rule = "matches no table of operator times",
                 .remedy = "matmul: gpu dtype m n k latency_ms"};
  }
  if (result.fits.empty()) {
    return Error{
        .where = path,
        .rule = "holds no device and kind with " + std::to_string(kMinFitRows) + " usable rows"};
  }
  return result;
}

}  // namespace meshwright
