// Calibration: what was measured on one machine, for the cost model to use instead of data sheets.
//
// Made by `meshwright calibrate` through the worker, read by sim/cost. Every figure is a
// measurement of the executor's own operators and collectives, taken with as many ranks at work as
// the machine has cores, so that shared caches and memory count.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/result.h"
#include "sim/core/units.h"
#include "sim/graph/operator.h"

namespace meshwright {

/// One matmul [m, k] x [k, n] as forward, input gradient or weight gradient.
struct MatmulSample {
  OpKind kind = OpKind::kLinear;
  int64_t m = 0, n = 0, k = 0;
  double seconds = 0;
};

/// Causal flash attention of one sequence and head geometry.
struct AttentionSample {
  int64_t seq_len = 0;
  int64_t head_dim = 0;
  double forward_flop_per_s = 0;  ///< Over the flop that ModelGraph counts.
  double backward_flop_per_s = 0;
};

/// A memory-bound operator: seconds = overhead + bytes / rate, over the bytes that ModelGraph
/// counts.
struct StreamFit {
  OpKind kind = OpKind::kAdd;
  double overhead_s = 0;
  double bytes_per_s = 0;
};

enum class CommOp : uint8_t { kAllReduce, kAllGather, kReduceScatter, kSendRecv, kAllToAll };
inline constexpr int kNumCommOps = 5;
[[nodiscard]] std::string_view to_string(CommOp op);

/// A collective of `group_size` ranks: seconds = alpha + bytes * beta; bytes are the full tensor's.
struct CollectiveFit {
  CommOp op = CommOp::kAllReduce;
  int group_size = 2;
  double alpha_s = 0;
  double beta_s_per_byte = 0;
};

struct Calibration {
  std::string id;          ///< Content hash, filled when read or written.
  std::string machine_id;  ///< MachineFacts::id.
  std::string cpu_model;
  int cores = 1;
  std::string date;
  std::string tool_version;
  std::vector<MatmulSample> matmul;
  std::vector<AttentionSample> attention;
  std::vector<StreamFit> stream;
  std::vector<CollectiveFit> collectives;
  double adamw_params_per_s = 0;
  double host_per_operator_s = 0;  ///< Interpreter time between operators.
  double host_per_action_s = 0;
  /// Slow-down of a rank beyond its fair share when ranks outnumber cores (caches are refilled at
  /// every switch).
  double oversubscription = 1.0;
};

[[nodiscard]] Result<Calibration> read_calibration(const std::string& path);
[[nodiscard]] Result<Ok> write_calibration(const std::string& path, const Calibration& calibration);

/// The calibration to price `cluster` with: `path` when given (refused when it is of another
/// machine, unless `force`), else the newest of this machine in `default_dir`, else nothing.
[[nodiscard]] Result<std::optional<Calibration>> find_calibration(const std::string& path,
                                                                  const std::string& default_dir,
                                                                  const std::string& machine_id,
                                                                  bool force);

}  // namespace meshwright
