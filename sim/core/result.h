// Result<T>: a value or the user's mistake, with std::expected's member names.
//
// C++20 has no std::expected; when the compilers here do, `Result<T>` becomes an alias of it.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/core/check.h"

namespace meshwright {

/// How a failed command ends; the numbers are the process's exit status (the command-line
/// contract).
enum class ErrorCode {
  kNegative = 1,       ///< The answer is no: nothing fits, parity or fidelity fails.
  kBadInput = 2,       ///< The user gave something that cannot be used.
  kInternal = 3,       ///< Our defect.
  kRankFailed = 70,    ///< A rank of the job failed; the message names it.
  kLaunchFailed = 75,  ///< The job could not be started; worth retrying.
};

/// A mistake that a person can mend: which field, its value, the rule it breaks, and what to do.
struct Error {
  ErrorCode code = ErrorCode::kBadInput;
  std::string where{};   ///< File, flag or JSON pointer, e.g. "plan.json#/layout/tp" or "--layout".
  std::string field{};   ///< e.g. "tp".
  std::string value{};   ///< What was given, as text, e.g. "3".
  std::string rule{};    ///< e.g. "tp must divide num_heads (64)".
  std::string remedy{};  ///< e.g. "use tp=2 or tp=4".
};

/// One line for a person: "where: field = value: rule; remedy". Empty parts are left out.
[[nodiscard]] std::string to_string(const Error& error);

/// A value of type T, or an Error. `value()` on an error aborts (MW_CHECK).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: as expected
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: as expected

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  [[nodiscard]] T& value() & {
    MW_CHECK(has_value(), to_string(std::get<1>(state_)));
    return std::get<0>(state_);
  }
  [[nodiscard]] const T& value() const& {
    MW_CHECK(has_value(), to_string(std::get<1>(state_)));
    return std::get<0>(state_);
  }
  [[nodiscard]] T&& value() && {
    MW_CHECK(has_value(), to_string(std::get<1>(state_)));
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] const Error& error() const {
    MW_CHECK(!has_value());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

/// Nothing, or an Error: `Result<Ok>`.
struct Ok {};

}  // namespace meshwright

#define MW_CONCAT_INNER(a, b) a##b
#define MW_CONCAT(a, b) MW_CONCAT_INNER(a, b)

/// Evaluates `expr` (a Result); on error returns the error from the enclosing function.
#define MW_RETURN_IF_ERROR(expr)               \
  do {                                         \
    if (auto mw_result = (expr); !mw_result) { \
      return mw_result.error();                \
    }                                          \
  } while (false)

/// MW_ASSIGN_OR_RETURN(auto x, f()): assigns the value, or returns the error.
#define MW_ASSIGN_OR_RETURN(lhs, expr) /* NOLINT(bugprone-macro-parentheses) */ \
  auto MW_CONCAT(mw_result_, __LINE__) = (expr);                                \
  if (!MW_CONCAT(mw_result_, __LINE__)) {                                       \
    return MW_CONCAT(mw_result_, __LINE__).error();                             \
  }                                                                             \
  lhs = std::move(MW_CONCAT(mw_result_, __LINE__)).value()
