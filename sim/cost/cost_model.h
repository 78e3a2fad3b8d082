// CostModel: how long operators, collectives and host work take on one cluster.
//
// Reads: ClusterSpec, and a Calibration where there is one. Feeds: the simulator. Each figure says
// where it comes from: `fitted` (published measurements, in models/hardware), or `measured` (this
// machine's calibration).
//
// GPU clusters: blocks are priced by the step model (sim/step), whose constants were fitted on
// published training steps. A device that it does not know: a matmul takes max(tiles, bytes), where
// ceil(M/tm) ceil(N/tn) tiles are dealt to the compute units in waves, at a fitted fraction of
// peak; attention and elementwise operators run at a fraction of peak and of memory bandwidth; a
// collective takes what NCCL's protocols take on its link generation (sim/cost/collectives). Host
// time to issue a layer hides behind the device, and shows where it is longer. Calibration: matmul
// rate by inverse-distance weighting over the measured shapes in log space, the rest by its own
// measured line. Host time adds, since a CPU rank issues and computes on one core.
//
// Ignored: overlap slowing compute down, congestion between groups.
#pragma once

#include <memory>
#include <optional>

#include "sim/core/units.h"
#include "sim/graph/model_graph.h"
#include "sim/mesh/mesh.h"
#include "sim/plan/plan.h"
#include "sim/spec/calibration.h"
#include "sim/step/plan_problem.h"

namespace meshwright {

/// How a communication group lies on the nodes.
struct GroupShape {
  int num_ranks = 1;
  int ranks_per_node = 1;  ///< Members that share a node; equal to num_ranks inside one node.
  [[nodiscard]] bool inside_node() const { return ranks_per_node >= num_ranks; }
};

/// The shape of rank 0's group of `kind`.
[[nodiscard]] GroupShape group_shape(const Mesh& mesh, const ClusterSpec& cluster, GroupKind kind);

/// The groups that the operators of a block communicate in.
struct ShardGroups {
  GroupShape tp, cp, ep;
  [[nodiscard]] const GroupShape& of(OpGroup g) const {
    return g == OpGroup::kTp ? tp : g == OpGroup::kCp ? cp : ep;
  }
};
[[nodiscard]] ShardGroups shard_groups(const Mesh& mesh, const ClusterSpec& cluster);

/// One list of operators.
struct ListCost {
  Seconds compute;
  Seconds tp, cp, ep;  ///< Collectives of these axes that show.
  Seconds offload;     ///< Transfers to other memory that show.
  Seconds host;        ///< That the device cannot hide.
  [[nodiscard]] Seconds device() const { return compute + tp + cp + ep + offload; }
  [[nodiscard]] Seconds total() const { return device() + host; }
};
[[nodiscard]] ListCost operator+(const ListCost& a, const ListCost& b);
[[nodiscard]] ListCost operator*(const ListCost& a, double times);

class CostModel {
 public:
  CostModel(const ClusterSpec& cluster, std::shared_ptr<const Calibration> calibration);

  /// The same prices on another part of the same cluster.
  [[nodiscard]] CostModel with_cluster(const ClusterSpec& cluster) const {
    return {cluster, calibration_};
  }

  [[nodiscard]] Seconds operator_time(const Operator& op,
                                      Precision precision,
                                      const ShardGroups& groups) const;
  /// `payload` is the full tensor. One rank costs zero.
  [[nodiscard]] Seconds collective_time(CommOp op, Bytes payload, const GroupShape& shape) const;
  [[nodiscard]] ListCost list_time(const std::vector<OperatorStep>& steps,
                                   BlockKind block,
                                   bool is_forward,
                                   Precision precision,
                                   const ShardGroups& groups) const;
  /// AdamW over `parameters` of this rank.
  [[nodiscard]] Seconds optimizer_time(double parameters, Precision precision) const;
  [[nodiscard]] Seconds host_per_action() const;
  [[nodiscard]] Seconds host_per_micro_batch() const;
  /// Filling `bytes` with zero.
  [[nodiscard]] Seconds zeroing_time(Bytes bytes) const;

  /// What prices the blocks of a GPU plan in place of list_time(): the step model's constants for
  /// this device, or nothing (CPU ranks, unknown devices).
  [[nodiscard]] const std::optional<StepStack>& step_stack() const { return stack_; }

  [[nodiscard]] bool calibrated() const { return calibration_ != nullptr; }
  /// "calibration 0123... of DATE" or "data sheet of DEVICE".
  [[nodiscard]] std::string provenance() const;
  [[nodiscard]] std::string calibration_id() const { return calibration_ ? calibration_->id : ""; }
  [[nodiscard]] const ClusterSpec& cluster() const { return cluster_; }
  /// Of the data sheet; on a calibrated machine the best measured matmul rate of one rank.
  [[nodiscard]] FlopPerSecond peak(Precision precision) const;
  /// Slow-down beyond fair sharing when ranks outnumber cores.
  [[nodiscard]] double oversubscription() const {
    return calibration_ ? calibration_->oversubscription : 1.0;
  }

 private:
  [[nodiscard]] Seconds matmul_time(const Operator& op, Precision precision) const;
  [[nodiscard]] Seconds attention_time(const Operator& op, Precision precision) const;
  [[nodiscard]] Seconds stream_time(const Operator& op) const;

  ClusterSpec cluster_;
  std::shared_ptr<const Calibration> calibration_;
  std::optional<StepStack> stack_;
};

}  // namespace meshwright
