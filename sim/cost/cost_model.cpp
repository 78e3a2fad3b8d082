// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/cost/collective_model.h"
#include "sim/cost/matmul_model.h"

namespace meshwright {
namespace {

/// Host time of a layer's backward over its forward's, fitted on eager frameworks (published
/// small-model steps).
constexpr double kHostBackward = 4.0;
/// Bytes read and written per parameter by fused AdamW: p, g, m, v in; p, m, v out (FP32), or with
/// a BF16 copy.
constexpr double kAdamBytesFp32 = 28.0;
constexpr double kAdamBytesBf16 = 34.0;
constexpr int64_t kGroupTile = 128;  ///< Rows of a tile of a grouped matmul.
/// Batched score matmuls over the tensor peak, fitted on published steps without flash attention.
constexpr double kScoreMatmulFraction = 0.5;

/// A calibration of one rank measures no collectives; the data sheet of the machine then prices
/// them.
bool measures(const Calibration& calibration, CommOp op) {
  const auto& fits = calibration.collectives;
  return std::any_of(fits.begin(), fits.end(), [&](const CollectiveFit& f) { return f.op == op; });
}

CommOp comm_op(OpKind kind) {
  if (kind == OpKind::kAllGather) return CommOp::kAllGather;
  if (kind == OpKind::kAllToAll) return CommOp::kAllToAll;
  if (kind == OpKind::kRingKv) return CommOp::kSendRecv;
  return kind == OpKind::kReduceScatter ? CommOp::kReduceScatter : CommOp::kAllReduce;
}

}  // namespace

GroupShape group_shape(const Mesh& mesh, const ClusterSpec& cluster, GroupKind kind) {
  GroupShape shape;
  const std::vector<int> ranks = mesh.group(kind, 0);
  shape.num_ranks = static_cast<int>(ranks.size());
  const int node = ranks.front() / cluster.devices_per_node;
  shape.ranks_per_node = static_cast<int>(std::count_if(
      ranks.begin(), ranks.end(), [&](int r) { return r / cluster.devices_per_node == node; }));
  return shape;
}

ListCost operator+(const ListCost& a, const ListCost& b) {
  return {.compute = a.compute + b.compute,
          .tp = a.tp + b.tp,
          .cp = a.cp + b.cp,
          .ep = a.ep + b.ep,
          .offload = a.offload + b.offload,
          .host = a.host + b.host};
}

ListCost operator*(const ListCost& a, double times) {
  return {.compute = a.compute * times,
          .tp = a.tp * times,
          .cp = a.cp * times,
          .ep = a.ep * times,
          .offload = a.offload * times,
          .host = a.host * times};
}

ShardGroups shard_groups(const Mesh& mesh, const ClusterSpec& cluster) {
  return {.tp = group_shape(mesh, cluster, GroupKind::kTp),
          .cp = group_shape(mesh, cluster, GroupKind::kCp),
          .ep = group_shape(mesh, cluster, GroupKind::kEp)};
}

CostModel::CostModel(const ClusterSpec& cluster, std::shared_ptr<const Calibration> calibration)
    : cluster_(cluster),
      calibration_(cluster.is_local() ? std::move(calibration) : nullptr),
      stack_(meshwright::step_stack(cluster)) {}

FlopPerSecond CostModel::peak(Precision precision) const {
  if (calibration_) {
    double best = 0;
    for (const MatmulSample& s : calibration_->matmul) {
      best = std::max(best,
                      2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) *
                          static_cast<double>(s.k) / s.seconds);
    }
    return FlopPerSecond{best};
  }
  return precision == Precision::kFp32 ? cluster_.device.peak_fp32 : cluster_.device.peak_bf16;
}

Seconds CostModel::matmul_time(const Operator& op, Precision precision) const {
  if (op.flop.v <= 0) return Seconds{};
  if (calibration_)
    return op.flop / sampled_matmul_rate(calibration_->matmul, op.kind, op.m, op.n, op.k);
  const DeviceSpec& d = cluster_.device;
  const Seconds bytes = op.bytes / BytesPerSecond{d.memory_bandwidth.v * d.memory_fraction};
  // A grouped launch deals the tiles of all its matmuls together; each starts on a tile of its own.
  const int64_t m =
      op.groups == 1 ? op.m : op.groups * ((op.m + kGroupTile - 1) / kGroupTile) * kGroupTile;
  return std::max(tiled_matmul_time(d, peak(precision), m, op.n, op.k), bytes) + d.launch;
}

Seconds CostModel::attention_time(const Operator& op, Precision precision) const {
  const bool forward = op.kind == OpKind::kAttention;
  if (calibration_) {
    // The nearest measured geometry in log space; op.m is the sequence length, op.n the head width.
    const AttentionSample* best = nullptr;
    double best_distance = std::numeric_limits<double>::infinity();
    for (const AttentionSample& s : calibration_->attention) {
      const double ds = std::log2(static_cast<double>(op.m) / static_cast<double>(s.seq_len));
      const double dh = std::log2(static_cast<double>(op.n) / static_cast<double>(s.head_dim));
      const double distance = ds * ds + dh * dh;
      if (distance < best_distance) {
        best_distance = distance;
        best = &s;
      }
    }
    return op.flop / FlopPerSecond{forward ? best->forward_flop_per_s : best->backward_flop_per_s};
  }
  const DeviceSpec& d = cluster_.device;
  const double fraction = forward ? d.attention_forward_fraction : d.attention_backward_fraction;
  return op.flop / FlopPerSecond{peak(precision).v * fraction} + d.launch;
}

Seconds CostModel::stream_time(const Operator& op) const {
  if (calibration_) {
    const auto& fits = calibration_->stream;
    auto fit = std::find_if(
        fits.begin(), fits.end(), [&](const StreamFit& f) { return f.kind == op.kind; });
    // An operator that was not measured moves bytes like an addition.
    if (fit == fits.end())
      fit = std::find_if(
          fits.begin(), fits.end(), [](const StreamFit& f) { return f.kind == OpKind::kAdd; });
    MW_CHECK(fit != fits.end(), "a calibration without additions");
    return Seconds{fit->overhead_s + op.bytes.v / fit->bytes_per_s};
  }
  const DeviceSpec& d = cluster_.device;
  return (op.bytes + op.workspace) / BytesPerSecond{d.memory_bandwidth.v * d.memory_fraction} +
         d.launch;
}

Seconds CostModel::operator_time(const Operator& op,
                                 Precision precision,
                                 const ShardGroups& groups) const {
  if (is_collective(op.kind))
    return collective_time(comm_op(op.kind), op.bytes, groups.of(op.group));
  if (is_linear(op.kind)) return matmul_time(op, precision);
  if (is_attention(op.kind)) return attention_time(op, precision);
  if (is_score_matmul(op.kind) && !calibration_) {
    return op.flop / FlopPerSecond{peak(precision).v * kScoreMatmulFraction} +
           cluster_.device.launch;
  }
  return stream_time(op);
}

Seconds CostModel::collective_time(CommOp op, Bytes payload, const GroupShape& shape) const {
  if (shape.num_ranks <= 1) return Seconds{};
  if (calibration_ && measures(*calibration_, op)) {
    const Seconds measured = measured_collective_time(*calibration_, op, payload, shape.num_ranks);
    // Taken with the whole group at work: where ranks outnumber cores, the sharing that the event
    // loop will add again is taken out, so that what is left is the work of one rank.
    const double crowding = static_cast<double>(shape.num_ranks) / calibration_->cores;
    return crowding > 1 ? measured / (crowding * calibration_->oversubscription) : measured;
  }
  return link_collective_time(cluster_, op, payload, shape);
}

ListCost CostModel::list_time(const std::vector<OperatorStep>& steps,
                              BlockKind block,
                              bool is_forward,
                              Precision precision,
                              const ShardGroups& groups) const {
  ListCost cost;
  Seconds behind;  // a ring that the next attention hides
  for (const OperatorStep& s : steps) {
    const Seconds t = operator_time(s.op, precision, groups);
    if (s.op.kind == OpKind::kRingKv) {
      behind = t;
      continue;
    }
    if (is_attention(s.op.kind)) cost.cp += std::max(Seconds{}, std::exchange(behind, {}) - t);
    Seconds& term = !is_collective(s.op.kind)    ? cost.compute
                    : s.op.group == OpGroup::kTp ? cost.tp
                    : s.op.group == OpGroup::kCp ? cost.cp
                                                 : cost.ep;
    term += t;
  }
  if (calibration_) {
    cost.host = Seconds{calibration_->host_per_operator_s * static_cast<double>(steps.size())};
  } else if (is_decoder(block)) {
    const Seconds host = cluster_.device.host_per_layer * (is_forward ? 1.0 : kHostBackward);
    const Seconds device = cost.device();
    cost.host = host > device ? host - device : Seconds{};
  }
  return cost;
}

Seconds CostModel::optimizer_time(double parameters, Precision precision) const {
  if (calibration_) return Seconds{parameters / calibration_->adamw_params_per_s};
  const DeviceSpec& d = cluster_.device;
  const double bytes =
      parameters * (precision == Precision::kFp32 ? kAdamBytesFp32 : kAdamBytesBf16);
  return Bytes{bytes} / BytesPerSecond{d.memory_bandwidth.v * d.memory_fraction} + d.launch;
}

Seconds CostModel::zeroing_time(Bytes bytes) const {
  Operator zero{.kind = OpKind::kZero, .inputs = {}, .outputs = {}};
  zero.bytes = bytes;
  return stream_time(zero);
}

Seconds CostModel::host_per_action() const {
  return calibration_ ? Seconds{calibration_->host_per_action_s} : cluster_.device.launch;
}

Seconds CostModel::host_per_micro_batch() const {
  return stack_ ? Seconds{stack_->framework.host_micro_batch_s}
                : cluster_.device.host_per_micro_batch;
}

std::string CostModel::provenance() const {
  if (calibration_)
    return fmt::format("calibration {} of {}", calibration_->id, calibration_->date);
  if (stack_) {
    return fmt::format("data sheet of {}, {} as fitted on published runs",
                       cluster_.device.name,
                       stack_->framework.name);
  }
  return fmt::format("data sheet of {}, fitted efficiencies", cluster_.device.name);
}

}  // namespace meshwright
