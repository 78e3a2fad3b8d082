// SPDX-License-Identifier: Apache-2.0
// Each operator allocates its declared outputs and workspace, and not a byte more: the memory
// replay adds up exactly these figures. Run operator by operator, because a step's peak shows only
// one of them.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "exec/comm/communicator.h"
#include "exec/data/batch_reader.h"
#include "exec/model/operators.h"
#include "exec/runtime/counting_allocator.h"
#include "tests/unit/exec/spawn_ranks.h"
#include "tests/unit/exec/tiny_plan.h"

namespace meshwright {
namespace {

int64_t bytes_of(const BlockGraph& g, const std::vector<BufferId>& ids) {
  int64_t sum = 0;
  for (const BufferId id : ids) sum += g.buffers[static_cast<size_t>(id)].bytes();
  return sum;
}

void run_list(const BlockGraph& g, const std::vector<OperatorStep>& steps, OperatorContext& ctx) {
  std::vector<at::Tensor>& b = *ctx.buffers;
  for (const OperatorStep& step : steps) {
    const int64_t before = allocator_stats().live_bytes;
    reset_peak();
    if (!allocates_own_outputs(step.op.kind)) {
      for (const BufferId id : step.allocates) {
        const BufferSpec& spec = g.buffers[static_cast<size_t>(id)];
        b[static_cast<size_t>(id)] =
            at::empty(spec.shape, spec.dtype == DType::kInt64 ? at::kLong : at::kFloat);
      }
    }
    run_operator(step.op, ctx);
    const int64_t outputs = bytes_of(g, step.allocates);
    EXPECT_EQ(allocator_stats().live_bytes - before, outputs) << to_string(step.op.kind);
    EXPECT_EQ(allocator_stats().peak_bytes - before,
              outputs + static_cast<int64_t>(step.op.workspace.v))
        << to_string(step.op.kind);
    for (const BufferId id : step.releases) b[static_cast<size_t>(id)].reset();
    EXPECT_EQ(allocator_stats().live_bytes - before, outputs - bytes_of(g, step.releases))
        << to_string(step.op.kind);
  }
}

void expect_declared_bytes(const TinyPlan& tiny) {
  SCOPED_TRACE("seq " + std::to_string(tiny.seq_len) + " head_dim " +
               std::to_string(tiny.head_dim) + " heads " + std::to_string(tiny.num_heads) + "/" +
               std::to_string(tiny.num_kv_heads) + " micro_batch " +
               std::to_string(tiny.layout.micro_batch));
  const Plan plan = make_plan(tiny);
  const auto source = random_source(plan.model().vocab_size, plan.workload().seq_len, 5);
  const auto world = CommWorld::connect("file:unused", 0, 1, std::chrono::seconds(1));
  const auto tp = world->group({0});
  const ModelGraph graph = build_model_graph(plan, 0);
  ParameterStore params(plan, 0);
  const RopeTables rope = make_rope_tables(plan.model(), plan.workload().seq_len);
  BatchReader batches(*source, plan, 0);
  OperatorContext ctx{
      .graph = graph, .params = params, .rope = rope, .tp = *tp, .batches = batches};

  const int blocks = num_blocks(plan.model());
  std::vector<std::vector<at::Tensor>> buffers(static_cast<size_t>(blocks));
  at::Tensor carried;
  const auto enter = [&](int block) -> const BlockGraph& {
    ctx.block = block;
    ctx.buffers = &buffers[static_cast<size_t>(block)];
    ctx.buffers->resize(graph.block(block).buffers.size());
    return graph.block(block);
  };
  for (int block = 0; block < blocks; ++block) {
    const BlockGraph& g = enter(block);
    if (g.input >= 0) (*ctx.buffers)[static_cast<size_t>(g.input)] = std::exchange(carried, {});
    run_list(g, g.forward, ctx);
    if (g.output >= 0) carried = std::exchange((*ctx.buffers)[static_cast<size_t>(g.output)], {});
  }
  for (int block = blocks - 1; block >= 0; --block) {
    const BlockGraph& g = enter(block);
    if (carried.defined()) (*ctx.buffers)[static_cast<size_t>(g.grad)] = std::exchange(carried, {});
    run_list(g, g.recompute, ctx);
    run_list(g, g.backward, ctx);
    carried = std::exchange((*ctx.buffers)[static_cast<size_t>(g.grad)], {});
  }
}

class OperatorMemory : public ::testing::TestWithParam<int64_t> {};

TEST_P(OperatorMemory, IsWhatTheListDeclares) {
  const int64_t seq_len = GetParam();
  spawn_one([seq_len] {
    install_counting_allocator();
    at::set_num_threads(1);
    for (const int64_t head_dim : {32, 64, 128}) {
      TinyPlan tiny{
          .num_layers = 2, .head_dim = head_dim, .qkv_bias = head_dim == 64, .seq_len = seq_len};
      tiny.global_batch = 2;
      expect_declared_bytes(tiny);
      tiny.layout.micro_batch = 2;
      tiny.num_kv_heads = 4;
      tiny.layout.recompute = Recompute::kFull;
      expect_declared_bytes(tiny);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(SequenceLengths,
                         OperatorMemory,
                         ::testing::Values(16, 64, 100, 191, 192, 256, 700, 768, 1024));

}  // namespace
}  // namespace meshwright
