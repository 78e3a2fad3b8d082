// The feed-forward branch of a decoder layer: dense (gated or not), or a mixture of experts with an
// optional shared expert.
//
// Experts: each token's k rows are put in order of their expert, cross to the expert's rank over ep
// (all-to-all), pass through one grouped matmul per projection, and return. Rows per rank are the
// balanced mean; imbalance is the cost model's matter.
#pragma once

#include <functional>
#include <string>

#include "sim/graph/branch.h"

namespace meshwright {

class FeedForwardBranch {
 public:
  explicit FeedForwardBranch(BlockBuilder& b, bool moe) : b_(b), moe_(moe) {}

  /// Returns the layer's hidden state after the branch [TL, D].
  BufferId forward(BufferId mid);
  /// Adds the branch's gradient to `grad` [TL, D].
  void backward(BufferId grad);

 private:
  /// One gated or plain projection pair of width `width`.
  struct Mlp {
    BufferId up = -1;
    BufferId act = -1;
    int64_t width = 0;
    ParamSlot up_slot = ParamSlot::kNone;
    ParamSlot down_slot = ParamSlot::kNone;
  };
  Mlp mlp_up(const std::string& name,
             BufferId x,
             int64_t rows,
             int64_t width,
             ParamSlot up,
             ParamSlot down,
             int64_t groups);
  /// Gradient of the pair's input into `dx`; `dy` is that of its output. `input` gives the pair's
  /// input, gathered only where it is needed.
  void mlp_backward(const std::string& name,
                    const Mlp& mlp,
                    BufferId dy,
                    BufferId dx,
                    const std::function<BufferId()>& input,
                    int64_t rows,
                    int64_t groups);
  /// The branch's output, summed over tp [TL, D].
  BufferId experts_forward();
  /// From its gradient `own` to that of the layer's input, added to `grad`.
  void experts_backward(BufferId own, BufferId grad);
  /// Through the routed experts and the router, for the tokens that this rank routes.
  void routed_backward(BufferId dy, BufferId dnorm, BufferId normed, int64_t tokens);
  [[nodiscard]] int64_t local_experts() const;
  [[nodiscard]] BranchEndSpec end_spec() const;

  BlockBuilder& b_;
  bool moe_;
  NormState norm_;
  BranchEnd end_;
  Mlp dense_, expert_, shared_;
  int64_t expert_rows_ = 0;
  BufferId logits_ = -1, weights_ = -1, index_ = -1, rows_ = -1, arrived_ = -1, returned_ = -1;
};

}  // namespace meshwright
