// Plan: the decision. A model on a cluster for a workload in one layout, checked once.
//
// Only validate() makes a Plan, so nothing downstream re-checks what a person wrote. Everything
// else derives from it: the Program (sim/schedule), memory and time (sim/simulator), and what a
// worker executes (exec/worker).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/result.h"
#include "sim/mesh/layout.h"
#include "sim/mesh/stage_map.h"
#include "sim/spec/cluster_spec.h"
#include "sim/spec/model_spec.h"
#include "sim/spec/workload.h"

namespace meshwright {

/// The question: train this model on this cluster with this workload.
struct Problem {
  ModelSpec model;
  ClusterSpec cluster;
  Workload workload;
};

/// A validated, immutable decision. Cheap to copy.
class Plan {
 public:
  [[nodiscard]] const ModelSpec& model() const { return problem_->model; }
  [[nodiscard]] const ClusterSpec& cluster() const { return problem_->cluster; }
  [[nodiscard]] const Workload& workload() const { return problem_->workload; }
  [[nodiscard]] const Problem& problem() const { return *problem_; }
  [[nodiscard]] const std::shared_ptr<const Problem>& shared_problem() const { return problem_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }

  [[nodiscard]] int world_size() const { return static_cast<int>(layout_.world_size()); }
  /// Micro-batches per data-parallel rank and step.
  [[nodiscard]] int64_t num_micro_batches() const;
  /// Tokens of one micro-batch on one data-parallel rank.
  [[nodiscard]] int64_t tokens_per_micro_batch() const;
  /// The virtual stages: which blocks, on which pipeline rank.
  [[nodiscard]] const StageMap& stage_map() const { return *stage_map_; }
  /// Blocks of one virtual stage, [begin, end): 0 is the embedding, then the decoder layers, then
  /// the head. Without virtual stages a virtual stage is a pipeline rank.
  [[nodiscard]] std::pair<int, int> blocks_of_stage(int virtual_stage) const;
  /// Whether a block repeats its forward before its backward.
  [[nodiscard]] bool recomputes(int block) const { return recomputes_[static_cast<size_t>(block)]; }
  /// The pipeline rank that holds a block; of two copies of the model, the first.
  [[nodiscard]] int stage_of_block(int block) const;

 private:
  friend struct ValidationOutcome validate(std::shared_ptr<const Problem> problem,
                                           const Layout& layout);
  Plan(std::shared_ptr<const Problem> problem, Layout layout);

  std::shared_ptr<const Problem> problem_;
  Layout layout_;
  std::shared_ptr<const StageMap> stage_map_;
  std::vector<bool> recomputes_;  ///< Per block.
};

/// A plan, or every rule the layout breaks: each with a JSON pointer, the rule and the nearest
/// legal choice.
struct ValidationOutcome {
  std::optional<Plan> plan;
  std::vector<Error> violations;
};

/// Checks `layout` against the model, the cluster and the workload. An empty `layout.stages` is
/// filled with balanced_stages(). Whether the plan fits in memory is not a rule but an answer: see
/// simulate().
[[nodiscard]] ValidationOutcome validate(std::shared_ptr<const Problem> problem,
                                         const Layout& layout);

}  // namespace meshwright
