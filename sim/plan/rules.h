// The rules of a legal layout, by subject. Each adds what is broken, with the nearest legal choice.
//
// Reads: a Problem and a Layout. Feeds: validate(), which runs them all.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/plan/plan.h"

namespace meshwright {

struct Rules {
  const Problem& problem;
  const Layout& layout;
  std::vector<Error> found;

  template <class T>
  void broken(const char* field, const T& value, std::string rule, std::string remedy = "") {
    const bool of_workload = std::string_view(field) == "seq_len";
    found.push_back(
        Error{.where = fmt::format("/{}/{}", of_workload ? "workload" : "layout", field),
              .field = field,
              .value = fmt::format("{}", value),
              .rule = std::move(rule),
              .remedy = std::move(remedy)});
  }
};

/// The legal values around `wanted`, as "use tp=2 or tp=4"; empty when there is none up to `max`.
template <class Legal>
std::string nearest_legal(const char* name, int64_t wanted, int64_t max, Legal legal) {
  std::string text;
  for (int64_t x = std::min(wanted, max); x >= 1; --x) {
    if (legal(x)) {
      text = fmt::format("use {}={}", name, x);
      break;
    }
  }
  for (int64_t x = wanted + 1; x <= max; ++x) {
    if (legal(x)) {
      text += fmt::format("{}{}={}", text.empty() ? "use " : " or ", name, x);
      break;
    }
  }
  return text;
}

/// The first: the others divide by the degrees.
void check_positive(Rules& r);
void check_axes(Rules& r);
void check_tensor_parallel(Rules& r);
void check_context_parallel(Rules& r);
void check_experts(Rules& r);
void check_sequence(Rules& r);
void check_stages(Rules& r);
void check_batch(Rules& r);
void check_schedule(Rules& r);
void check_states(Rules& r);  ///< ZeRO, recompute, offload, number formats.
void check_engine(Rules& r);

}  // namespace meshwright
