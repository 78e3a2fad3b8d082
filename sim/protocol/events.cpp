// SPDX-License-Identifier: Apache-2.0
#include "sim/protocol/events.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

namespace meshwright {
namespace {

using OrderedJson = nlohmann::ordered_json;  // keys stay in the order of the contract

constexpr const char* kWhere = "event";
constexpr const char* kRemedy = "use the worker that belongs to this program";
constexpr const char* kNonfiniteSuffix = "_nonfinite";

/// The fields of each event, named once for both directions: calls visit(name, field).
template <class MaybeConstEvent, class Visit>
void for_each_field(MaybeConstEvent& e, Visit visit) {
  using E = std::remove_const_t<MaybeConstEvent>;
  if constexpr (std::is_same_v<E, StartedEvent>) {
    visit("plan_hash", e.plan_hash);
    visit("world", e.world);
  } else if constexpr (std::is_same_v<E, StepEvent>) {
    visit("step", e.step);
    visit("loss", e.loss);
    visit("grad_norm", e.grad_norm);
    visit("lr", e.lr);
    visit("tokens", e.tokens);
    visit("step_time_s", e.step_time_s);
    visit("peak_memory_bytes", e.peak_memory_bytes);
  } else if constexpr (std::is_same_v<E, WarningEvent>) {
    visit("code", e.code);
    visit("message", e.message);
  } else if constexpr (std::is_same_v<E, CheckpointEvent>) {
    visit("step", e.step);
    visit("path", e.path);
    visit("seconds", e.seconds);
  } else if constexpr (std::is_same_v<E, FailedEvent>) {
    visit("code", e.code);
    visit("step", e.step);
    visit("action", e.action);
    visit("message", e.message);
  } else {
    static_assert(std::is_same_v<E, FinishedEvent>);
    visit("steps", e.steps);  // `report` is a document, not a plain field: see below
  }
}

template <class E>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<E, StartedEvent>) return "started";
  if constexpr (std::is_same_v<E, StepEvent>) return "step";
  if constexpr (std::is_same_v<E, WarningEvent>) return "warning";
  if constexpr (std::is_same_v<E, CheckpointEvent>) return "checkpoint";
  if constexpr (std::is_same_v<E, FailedEvent>) return "failed";
  if constexpr (std::is_same_v<E, FinishedEvent>) return "finished";
}

// --- writing ---

template <class T>
void put(OrderedJson& line, const char* name, const T& field) {
  if constexpr (std::is_same_v<T, double>) {
    if (!std::isfinite(field)) {
      line[name] = nullptr;
      line[std::string(name) + kNonfiniteSuffix] =
          std::isnan(field) ? "nan" : (field > 0 ? "inf" : "-inf");
      return;
    }
  }
  line[name] = field;
}

template <class T>
void put(OrderedJson& line, const char* name, const std::optional<T>& field) {
  if (field) put(line, name, *field);
}

// --- reading ---

Error bad_field(std::string field, std::string value, std::string rule) {
  return {.where = kWhere,
          .field = std::move(field),
          .value = std::move(value),
          .rule = std::move(rule),
          .remedy = kRemedy};
}

/// Reads fields of one line and keeps the first mistake.
class FieldReader {
 public:
  explicit FieldReader(const OrderedJson& line) : line_(line) {}

  template <class T>
  void get(const char* name, T& field) {
    const auto found = line_.find(name);
    if (found == line_.end()) return fail(bad_field(name, "", "is missing"));
    read(name, *found, field);
  }

  template <class T>
  void get(const char* name, std::optional<T>& field) {
    const auto found = line_.find(name);
    if constexpr (std::is_same_v<T, double>) {
      const auto special = line_.find(std::string(name) + kNonfiniteSuffix);
      if (special != line_.end() && (found == line_.end() || found->is_null())) {
        return read_nonfinite(special.key(), *special, field.emplace());
      }
    }
    if (found != line_.end() && !found->is_null()) read(name, *found, field.emplace());
  }

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }

  static std::string text(const OrderedJson& json) {
    return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace).substr(0, 80);
  }

  void read(const char* name, const OrderedJson& json, std::string& field) {
    if (!json.is_string()) return fail(bad_field(name, text(json), "must be a string"));
    field = json.get_ref<const std::string&>();
  }

  void read(const char* name, const OrderedJson& json, double& field) {
    if (!json.is_number()) return fail(bad_field(name, text(json), "must be a number"));
    field = json.get<double>();
  }

  /// Integers of the protocol: counts, which are never negative, and the time stamp.
  template <class Int>
  requires std::is_integral_v<Int>
  void read(const char* name, const OrderedJson& json, Int& field) {
    if (!json.is_number_integer()) return fail(bad_field(name, text(json), "must be an integer"));
    constexpr auto kLargest = static_cast<uint64_t>(std::numeric_limits<Int>::max());
    if (!json.is_number_unsigned() || json.get<uint64_t>() > kLargest) {
      return fail(bad_field(name, text(json), fmt::format("must be from 0 to {}", kLargest)));
    }
    field = json.get<Int>();
  }

  void read_nonfinite(const std::string& name, const OrderedJson& json, double& field) {
    if (json == "nan") {
      field = std::numeric_limits<double>::quiet_NaN();
    } else if (json == "inf") {
      field = std::numeric_limits<double>::infinity();
    } else if (json == "-inf") {
      field = -std::numeric_limits<double>::infinity();
    } else {
      fail(bad_field(name, text(json), "must be \"nan\", \"inf\" or \"-inf\""));
    }
  }

  const OrderedJson& line_;
  std::optional<Error> error_;
};

template <class E>
Result<std::optional<Event>> read_event(const OrderedJson& line) {
  Event event;
  E body;
  FieldReader reader(line);
  reader.get("t_ns", event.t_ns);
  reader.get("rank", event.rank);
  for_each_field(body, [&reader](const char* name, auto& field) { reader.get(name, field); });
  if (reader.error()) return *reader.error();
  if constexpr (std::is_same_v<E, StartedEvent>) {
    if (body.world < 1) return bad_field("world", "0", "must be at least 1");
  }
  if constexpr (std::is_same_v<E, FinishedEvent>) {
    if (const auto report = line.find("report"); report != line.end() && !report->is_null()) {
      if (!report->is_object()) return bad_field("report", "", "must be an object");
      body.report_json = report->dump();
    }
  }
  event.body = std::move(body);
  return std::optional(std::move(event));
}

template <class... E>
Result<std::optional<Event>> read_any(const std::string& type,
                                      const OrderedJson& line,
                                      const std::variant<E...>& /*choice*/) {
  Result<std::optional<Event>> result = std::optional<Event>();
  (void)((type == type_name<E>() && (result = read_event<E>(line), true)) || ...);
  return result;
}

}  // namespace

std::string to_json_line(const Event& event) {
  OrderedJson line;
  std::visit(
      [&](const auto& body) {
        using E = std::remove_cvref_t<decltype(body)>;
        line["v"] = kEventMajorVersion;
        line["type"] = type_name<E>();
        line["t_ns"] = event.t_ns;
        line["rank"] = event.rank;
        for_each_field(body,
                       [&line](const char* name, const auto& field) { put(line, name, field); });
        if constexpr (std::is_same_v<E, FinishedEvent>) {
          if (!body.report_json) return;
          line["report"] =
              OrderedJson::parse(*body.report_json, nullptr, /*allow_exceptions=*/false);
          MW_CHECK(line["report"].is_object(), "report_json must be a JSON object");
        }
      },
      event.body);
  return line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<std::optional<Event>> parse_event(std::string_view text) {
  OrderedJson line;
  try {
    line = OrderedJson::parse(text);
  } catch (const OrderedJson::exception& e) {
    const auto* at = dynamic_cast<const OrderedJson::parse_error*>(&e);
    return bad_field("column",
                     at != nullptr ? fmt::format("{}", at->byte) : "unknown",
                     "the line is not a JSON document");
  }
  if (!line.is_object()) return bad_field("", "", "the line is not a JSON object");
  const auto version = line.find("v");
  if (version == line.end()) return bad_field("v", "", "is missing");
  if (*version != kEventMajorVersion || !version->is_number_integer()) {
    return bad_field(
        "v",
        version->dump(-1, ' ', false, OrderedJson::error_handler_t::replace).substr(0, 80),
        fmt::format("this program reads version {}", kEventMajorVersion));
  }
  const auto type = line.find("type");
  if (type == line.end() || !type->is_string()) {
    return bad_field("type", "", "must be present and a string");
  }
  return read_any(type->get_ref<const std::string&>(), line, Event{}.body);
}

}  // namespace meshwright
