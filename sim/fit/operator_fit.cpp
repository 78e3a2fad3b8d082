// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/operator_fit.h"

#include <algorithm>
#include <map>

#include "sim/core/text.h"
#include "sim/fit/half_split_fit.h"
#include "sim/validate/attention_table.h"
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

/// Fits `model` to `rows`, timed by `time_us(constants, row)`.
template <class Constants, class Row, class Time>
OperatorFit fit_rows_of(std::span<const ModelConstant<Constants>> model,
                        const std::vector<const Row*>& rows,
                        Time&& time_us) {
  FittedModel<Constants> fitted(model);
  set_measurements(fitted.problem, rows);
  fitted.problem.predict = [&](auto values, auto choice, auto indices, auto predicted) {
    const Constants c = fitted.constants(values, choice);
    for (size_t i = 0; i < indices.size(); ++i) predicted[i] = time_us(c, *rows[indices[i]]);
  };
  return fitted.fit();
}

OperatorFit fit_gemm(const std::vector<const GemmRow*>& rows) {
  const GpuFacts gpu = gpu_facts(*rows.front()->spec);
  return fit_rows_of(gemm_model_constants(rows.front()->kind),
                     rows,
                     [&](const GemmConstants& c, const GemmRow& row) {
                       return gemm_time_us(c, gpu, row.kind, row.shape);
                     });
}

OperatorFit fit_attention(const std::vector<const AttentionRow*>& rows) {
  const GpuFacts gpu = gpu_facts(*rows.front()->spec);
  if (rows.front()->decodes()) {
    return fit_rows_of(
        decode_model_constants(), rows, [&](const DecodeConstants& c, const AttentionRow& row) {
          return decode_time_us(c, gpu, row.shape);
        });
  }
  return fit_rows_of(
      prefill_model_constants(), rows, [&](const PrefillConstants& c, const AttentionRow& row) {
        return prefill_time_us(c, gpu, row.shape);
      });
}

std::string kind_of(const GemmRow& row) { return to_string(row.kind); }
std::string kind_of(const AttentionRow& row) { return row.decodes() ? "decode" : "prefill"; }

/// Groups `rows` by device and kind and fits each group.
template <class Row>
void fit_groups(const std::vector<Row>& rows,
                const OperatorFitOptions& options,
                const DeviceSpec* only,
                OperatorFit (*fit)(const std::vector<const Row*>&),
                OperatorFits& result) {
  std::map<std::pair<std::string, std::string>, std::vector<const Row*>> groups;
  for (const Row& row : rows) {
    if (!row.skipped.empty() || (only != nullptr && row.spec != only)) continue;
    groups[{row.spec->name, kind_of(row)}].push_back(&row);
  }
  for (const auto& [key, group] : groups) {
    const std::vector<const Row*> usable = usable_rows(group);
    const auto judging = std::count_if(
        usable.begin(), usable.end(), [](const Row* r) { return is_held_out(r->id); });
    if (usable.size() < kMinFitRows || judging == 0 ||
        judging == static_cast<std::ptrdiff_t>(usable.size())) {
      continue;
    }
    if (options.progress) options.progress(key.first, key.second);
    OperatorFit found = fit(usable);
    found.device = key.first;
    found.kind = key.second;
    found.marked = usable.front()->marked;
    result.fits.push_back(std::move(found));
  }
}

}  // namespace

Result<OperatorFits> fit_operator_files(const std::vector<std::string>& paths,
                                        const OperatorFitOptions& options) {
  std::vector<NamedTable> tables;
  for (const std::string& path : paths) {
    MW_ASSIGN_OR_RETURN(CsvTable table, CsvTable::read(path));
    tables.push_back({path, std::move(table)});
  }
  return fit_operator_tables(tables, options);
}

Result<OperatorFits> fit_operator_tables(const std::vector<NamedTable>& tables,
                                         const OperatorFitOptions& options) {
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
  std::vector<GemmRow> gemm;
  std::vector<AttentionRow> attention;
  std::vector<std::string> paths;
  for (const auto& [path, table] : tables) {
    paths.push_back(path);
    if (table.has_columns(kGemmColumns)) {
      std::ranges::move(read_gemm_rows(table), std::back_inserter(gemm));
    } else if (table.has_columns(kAttentionColumns)) {
      std::ranges::move(read_attention_rows(table), std::back_inserter(attention));
    } else {
      return Error{.where = path,
                   .field = "header",
                   .rule = "matches no table of operator times",
                   .remedy =
                       "matmul: gpu dtype m n k latency_ms; attention: gpu batch_size isl "
                       "num_heads num_key_value_heads head_dim step latency_ms"};
    }
    if (!gemm.empty() && !attention.empty()) {
      return Error{.where = path,
                   .field = "header",
                   .rule = "is of another family than the first file's",
                   .remedy = "fit one family at a time"};
    }
  }
  OperatorFits result{.family = attention.empty() ? "gemm" : "attention",
                      .origin = options.origin.empty() ? join(paths) : options.origin};
  fit_groups(gemm, options, only, fit_gemm, result);
  fit_groups(attention, options, only, fit_attention, result);
  if (result.fits.empty()) {
    return Error{.where = join(paths),
                 .rule = "no device and kind has " + std::to_string(kMinFitRows) +
                         " usable rows, with some in both halves"};
  }
  return result;
}

}  // namespace meshwright
