// BlockExecutor: walks the operator lists of one rank's blocks and owns their buffers.
//
// Reads: the ModelGraph. A buffer is allocated at the step that the list says, with the bytes that
// it says, and dropped where it says; so the allocator's peak is the memory replay's. Feeds:
// exec/runtime/trainer.h, which calls it in the order of the Program.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "exec/model/operators.h"
#include "sim/graph/model_graph.h"
#include "sim/plan/plan.h"

namespace meshwright {

/// Seconds inside operators since the last take_times().
struct OperatorTimes {
  double compute_s = 0;
  double comm_s = 0;  ///< Tensor-parallel collectives.
};

/// Not thread-safe. The references must outlive it.
class BlockExecutor {
 public:
  BlockExecutor(
      const Plan& plan, int rank, ParameterStore& params, Communicator& tp, BatchReader& batches);
  BlockExecutor(const BlockExecutor&) = delete;  // the context refers to members
  BlockExecutor& operator=(const BlockExecutor&) = delete;

  /// Before the first action of a step. `grad_scale` is 1 / tokens that count in the loss.
  void start_step(int64_t step, float grad_scale);

  /// Runs the forward list. `input` is the output of the block before (undefined for the
  /// embedding); returns this block's output (undefined for the head). Both move: the caller must
  /// not hold on to them.
  [[nodiscard]] at::Tensor forward(int block, int micro_batch, at::Tensor input);

  void recompute(int block, int micro_batch);

  /// `grad` is the gradient of the output (undefined for the head); returns that of the input
  /// (undefined for the embedding), in the same memory.
  [[nodiscard]] at::Tensor backward(int block, int micro_batch, at::Tensor grad);

  /// The two halves of backward(). What the second one reads stays alive in between; the gradient
  /// may come back in other memory.
  [[nodiscard]] at::Tensor backward_input(int block, int micro_batch, at::Tensor grad);
  void backward_weight(int block, int micro_batch);

  /// Sum of the losses of this step's tokens; 0 on a stage without the head.
  [[nodiscard]] double loss_sum() const { return context_.loss.sum; }
  [[nodiscard]] OperatorTimes take_times();
  [[nodiscard]] int64_t table_bytes() const;

  /// Called after each operator; may be empty.
  void on_operator(std::function<void(const Operator&, double seconds)> hook) {
    on_operator_ = std::move(hook);
  }

  /// Fault injection: block 1's forward leaves out its first tensor-parallel sum.
  void skip_first_sum_of_block_1() { skip_first_sum_ = true; }

 private:
  [[nodiscard]] const BlockGraph& graph_of(int block) const { return graph_.block(block); }
  [[nodiscard]] std::vector<at::Tensor>& buffers(int block, int micro_batch);
  void end_micro_batch(int block, int micro_batch);
  void run(const BlockGraph& graph,
           const std::vector<OperatorStep>& steps,
           int block,
           int micro_batch);

  ModelGraph graph_;
  RopeTables rope_;
  int num_blocks_;
  std::vector<int> own_index_;  ///< Per block of the model: its number among this rank's, or -1.
  size_t num_own_blocks_ = 0;
  OperatorContext context_;
  OperatorTimes times_;
  std::function<void(const Operator&, double)> on_operator_;
  bool skip_first_sum_ = false;
  std::vector<std::vector<at::Tensor>>
      alive_;  ///< [micro_batch * num_own_blocks_ + own_index_[block]].
};

}  // namespace meshwright
