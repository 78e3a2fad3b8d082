// SPDX-License-Identifier: Apache-2.0
#include "exec/runtime/block_executor.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "sim/mesh/mesh.h"

namespace meshwright {
namespace {

at::ScalarType scalar_type(DType dtype) {
  MW_CHECK(dtype != DType::kBFloat16, "CPU ranks compute in FP32");
  return dtype == DType::kInt64 ? at::kLong : dtype == DType::kUInt8 ? at::kByte : at::kFloat;
}

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

BlockExecutor::BlockExecutor(
    const Plan& plan, int rank, ParameterStore& params, Communicator& tp, BatchReader& batches)
    : graph_(build_model_graph(plan, Mesh(plan.layout()).coord(rank).tp)),
      rope_(make_rope_tables(plan.model(), plan.workload().seq_len)),
      num_blocks_(num_blocks(plan.model())),
      context_{.graph = graph_,
               .params = params,
               .rope = rope_,
               .tp = tp,
               .batches = batches,
               .norm_eps = static_cast<float>(plan.model().norm_eps),
               .dropout = plan.model().dropout,
               .seed = plan.workload().seed} {
  own_index_.resize(static_cast<size_t>(num_blocks_), -1);
  for (const int stage : plan.stage_map().of_rank(Mesh(plan.layout()).coord(rank).pp)) {
    for (auto [b, end] = plan.blocks_of_stage(stage); b < end; ++b)
      own_index_[static_cast<size_t>(b)] = static_cast<int>(num_own_blocks_++);
  }
  alive_.resize(num_own_blocks_ * static_cast<size_t>(plan.num_micro_batches()));
}

void BlockExecutor::start_step(int64_t step, float grad_scale) {
  context_.step = step;
  context_.loss = {.grad_scale = grad_scale, .sum = 0};
}

std::vector<at::Tensor>& BlockExecutor::buffers(int block, int micro_batch) {
  return alive_[static_cast<size_t>(micro_batch) * num_own_blocks_ +
                static_cast<size_t>(own_index_[static_cast<size_t>(block)])];
}

at::Tensor BlockExecutor::forward(int block, int micro_batch, at::Tensor input) {
  const BlockGraph& g = graph_of(block);
  std::vector<at::Tensor>& b = buffers(block, micro_batch);
  MW_CHECK(b.empty(), "a second forward of the same block and micro-batch");
  b.resize(g.buffers.size());
  if (g.input >= 0) b[static_cast<size_t>(g.input)] = std::move(input);
  context_.num_skipped_sums = skip_first_sum_ && block == 1 ? 1 : 0;
  run(g, g.forward, block, micro_batch);
  context_.num_skipped_sums = 0;
  return g.output >= 0 ? std::exchange(b[static_cast<size_t>(g.output)], at::Tensor{})
                       : at::Tensor{};
}

void BlockExecutor::recompute(int block, int micro_batch) {
  const BlockGraph& g = graph_of(block);
  run(g, g.recompute, block, micro_batch);
}

at::Tensor BlockExecutor::backward(int block, int micro_batch, at::Tensor grad) {
  const BlockGraph& g = graph_of(block);
  std::vector<at::Tensor>& b = buffers(block, micro_batch);
  if (g.kind != BlockKind::kHead) b[static_cast<size_t>(g.grad)] = std::move(grad);
  run(g, g.backward, block, micro_batch);
  at::Tensor out = std::exchange(b[static_cast<size_t>(g.grad)], at::Tensor{});
  end_micro_batch(block, micro_batch);
  return out;
}

at::Tensor BlockExecutor::backward_input(int block, int micro_batch, at::Tensor grad) {
  const BlockGraph& g = graph_of(block);
  std::vector<at::Tensor>& b = buffers(block, micro_batch);
  if (g.kind != BlockKind::kHead) b[static_cast<size_t>(g.grad)] = std::move(grad);
  run(g, g.backward_input, block, micro_batch);
  return g.input_grad >= 0 ? std::exchange(b[static_cast<size_t>(g.input_grad)], at::Tensor{})
                           : at::Tensor{};
}

void BlockExecutor::backward_weight(int block, int micro_batch) {
  const BlockGraph& g = graph_of(block);
  run(g, g.backward_weight, block, micro_batch);
  end_micro_batch(block, micro_batch);
}

/// After the last pass of a block and micro-batch: nothing of it may be left.
void BlockExecutor::end_micro_batch(int block, int micro_batch) {
  std::vector<at::Tensor>& b = buffers(block, micro_batch);
  MW_CHECK(std::none_of(b.begin(), b.end(), [](const at::Tensor& t) { return t.defined(); }),
           "a buffer of block " + std::to_string(block) + " outlives its backward");
  b.clear();
}

void BlockExecutor::run(const BlockGraph& graph,
                        const std::vector<OperatorStep>& steps,
                        int block,
                        int micro_batch) {
  std::vector<at::Tensor>& b = buffers(block, micro_batch);
  context_.buffers = &b;
  context_.block = block;
  context_.micro_batch = micro_batch;
  for (const OperatorStep& step : steps) {
    if (!allocates_own_outputs(step.op.kind)) {
      for (const BufferId id : step.allocates) {
        const BufferSpec& spec = graph.buffers[static_cast<size_t>(id)];
        b[static_cast<size_t>(id)] = at::empty(spec.shape, scalar_type(spec.dtype));
      }
    }
    const Clock::time_point start = Clock::now();
    run_operator(step.op, context_);
    const double taken_s = seconds(Clock::now() - start);
    (is_collective(step.op.kind) ? times_.comm_s : times_.compute_s) += taken_s;
    if (on_operator_) on_operator_(step.op, taken_s);
    for (const BufferId id : step.releases) b[static_cast<size_t>(id)].reset();
  }
}

OperatorTimes BlockExecutor::take_times() { return std::exchange(times_, OperatorTimes{}); }

int64_t BlockExecutor::table_bytes() const {
  return static_cast<int64_t>(rope_.cos.nbytes() + rope_.sin.nbytes());
}

}  // namespace meshwright
