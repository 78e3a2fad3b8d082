// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "sim/core/hash.h"
#include "sim/core/json_reader.h"

namespace meshwright {
namespace {

constexpr Range kDim{1, 1e9};
constexpr Range kSeconds{0, 1e6};

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (int k = 0; k <= static_cast<int>(OpKind::kReduceScatter); ++k)
    names.emplace_back(to_string(static_cast<OpKind>(k)));
  return names;
}

OpKind read_kind(ObjectReader& r) {
  static const std::vector<std::string> kNames = op_names();
  const std::string name = r.choice("operator", kNames, "");
  return static_cast<OpKind>(std::find(kNames.begin(), kNames.end(), name) - kNames.begin());
}

CommOp read_comm(ObjectReader& r) {
  static const std::vector<std::string> kNames = {
      "all_reduce", "all_gather", "reduce_scatter", "send_recv", "all_to_all"};
  const std::string name = r.choice("collective", kNames, "");
  return static_cast<CommOp>(std::find(kNames.begin(), kNames.end(), name) - kNames.begin());
}

template <class T, class Read>
Result<std::vector<T>> read_array(ObjectReader& parent, const std::string& key, Read read) {
  std::vector<T> out;
  size_t i = 0;
  for (const Json& item : parent.array(key)) {
    ObjectReader r(item, parent.origin(), fmt::format("/{}/{}", key, i++));
    out.push_back(read(r));
    MW_RETURN_IF_ERROR(r.finish());
  }
  return out;
}

Json to_json(const Calibration& c) {
  Json json = {{"schema_version", 1},
               {"machine_id", c.machine_id},
               {"cpu_model", c.cpu_model},
               {"cores", c.cores},
               {"date", c.date},
               {"tool_version", c.tool_version},
               {"adamw_params_per_s", c.adamw_params_per_s},
               {"host_per_operator_s", c.host_per_operator_s},
               {"host_per_action_s", c.host_per_action_s},
               {"oversubscription", c.oversubscription}};
  for (const char* key : {"matmul", "attention", "stream", "collectives"})
    json[key] = Json::array();
  for (const MatmulSample& s : c.matmul) {
    json["matmul"].push_back({{"operator", to_string(s.kind)},
                              {"m", s.m},
                              {"n", s.n},
                              {"k", s.k},
                              {"seconds_s", s.seconds}});
  }
  for (const AttentionSample& s : c.attention) {
    json["attention"].push_back({{"seq_len", s.seq_len},
                                 {"head_dim", s.head_dim},
                                 {"forward_flop_per_s", s.forward_flop_per_s},
                                 {"backward_flop_per_s", s.backward_flop_per_s}});
  }
  for (const StreamFit& s : c.stream) {
    json["stream"].push_back({{"operator", to_string(s.kind)},
                              {"overhead_s", s.overhead_s},
                              {"bytes_per_s", s.bytes_per_s}});
  }
  for (const CollectiveFit& s : c.collectives) {
    json["collectives"].push_back({{"collective", to_string(s.op)},
                                   {"group_size", s.group_size},
                                   {"alpha_s", s.alpha_s},
                                   {"beta_s_per_byte", s.beta_s_per_byte}});
  }
  return json;
}

}  // namespace

std::string_view to_string(CommOp op) {
  static constexpr std::string_view kNames[kNumCommOps] = {
      "all_reduce", "all_gather", "reduce_scatter", "send_recv", "all_to_all"};
  return kNames[static_cast<size_t>(op)];
}

Result<Calibration> read_calibration(const std::string& path) {
  MW_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  MW_ASSIGN_OR_RETURN(const Json json, parse_json(text, path));
  ObjectReader r(json, path);
  Calibration c;
  r.integer("schema_version", {1, 1});
  c.machine_id = r.text("machine_id");
  c.cpu_model = r.text("cpu_model");
  c.cores = static_cast<int>(r.integer("cores", {1, 1e5}));
  c.date = r.text("date");
  c.tool_version = r.text("tool_version");
  c.adamw_params_per_s = r.number("adamw_params_per_s", kPositiveQuantity);
  c.host_per_operator_s = r.number("host_per_operator_s", kSeconds);
  c.host_per_action_s = r.number("host_per_action_s", kSeconds);
  c.oversubscription = r.number("oversubscription", {1.0, 10.0});
  MW_ASSIGN_OR_RETURN(c.matmul, (read_array<MatmulSample>(r, "matmul", [](ObjectReader& s) {
                        return MatmulSample{read_kind(s),
                                            s.integer("m", kDim),
                                            s.integer("n", kDim),
                                            s.integer("k", kDim),
                                            s.number("seconds_s", {1e-12, 1e6})};
                      })));
  MW_ASSIGN_OR_RETURN(c.attention,
                      (read_array<AttentionSample>(r, "attention", [](ObjectReader& s) {
                        return AttentionSample{s.integer("seq_len", kDim),
                                               s.integer("head_dim", kDim),
                                               s.number("forward_flop_per_s", kPositiveQuantity),
                                               s.number("backward_flop_per_s", kPositiveQuantity)};
                      })));
  MW_ASSIGN_OR_RETURN(c.stream, (read_array<StreamFit>(r, "stream", [](ObjectReader& s) {
                        return StreamFit{read_kind(s),
                                         s.number("overhead_s", kSeconds),
                                         s.number("bytes_per_s", kPositiveQuantity)};
                      })));
  MW_ASSIGN_OR_RETURN(c.collectives,
                      (read_array<CollectiveFit>(r, "collectives", [](ObjectReader& s) {
                        return CollectiveFit{read_comm(s),
                                             static_cast<int>(s.integer("group_size", {2, 1e6})),
                                             s.number("alpha_s", kSeconds),
                                             s.number("beta_s_per_byte", kSeconds)};
                      })));
  MW_RETURN_IF_ERROR(r.finish());
  for (const char* key : {"matmul", "attention", "stream"}) {
    if (json[key].empty()) {
      return Error{.where = path + "#/" + key,
                   .field = key,
                   .value = "[]",
                   .rule = "must not be empty",
                   .remedy = "calibrate again"};
    }
  }
  for (const OpKind kind :
       {OpKind::kLinear, OpKind::kLinearBackwardInput, OpKind::kLinearBackwardWeight}) {
    if (std::any_of(c.matmul.begin(), c.matmul.end(), [&](const MatmulSample& s) {
          return s.kind == kind;
        }))
      continue;
    return Error{.where = path + "#/matmul",
                 .field = "matmul",
                 .value = "no " + std::string(to_string(kind)),
                 .rule = "must hold samples of forward, input gradient and weight gradient",
                 .remedy = "calibrate again"};
  }
  c.id = hex(fnv1a(json.dump()));
  return c;
}

Result<Ok> write_calibration(const std::string& path, const Calibration& calibration) {
  return write_text_file(path, to_json(calibration).dump(1) + "\n");
}

Result<std::optional<Calibration>> find_calibration(const std::string& path,
                                                    const std::string& default_dir,
                                                    const std::string& machine_id,
                                                    bool force) {
  if (!path.empty()) {
    MW_ASSIGN_OR_RETURN(Calibration c, read_calibration(path));
    if (c.machine_id != machine_id && !force) {
      return Error{
          .where = path + "#/machine_id",
          .field = "machine_id",
          .value = c.machine_id,
          .rule = fmt::format(
              "was measured on another machine ({}); this one is {}", c.cpu_model, machine_id),
          .remedy = "run meshwright calibrate here, or pass --force to use it anyway"};
    }
    return std::optional<Calibration>(std::move(c));
  }
  std::optional<Calibration> newest;
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(default_dir, ec)) {
    if (entry.path().extension() != ".json") continue;
    auto c = read_calibration(entry.path().string());
    if (!c || c->machine_id != machine_id) continue;
    if (!newest || c->date > newest->date) newest = std::move(c).value();
  }
  return newest;
}

}  // namespace meshwright
