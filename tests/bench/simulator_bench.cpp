// SPDX-License-Identifier: Apache-2.0
// Speed of the event simulation: actions per second on one core, and whole steps of a large
// cluster.
//
// usage: simulator_bench [--benchmark_filter=...]; `items_per_second` is actions per second.
#include <benchmark/benchmark.h>

#include "sim/simulator/program_player.h"
#include "sim/simulator/simulate.h"

namespace meshwright {
namespace {

/// Llama-3 405B on 16,384 devices, tp 8, pp 16, dp 128.
Plan llama_405b(ScheduleKind schedule, int virtual_stages, int64_t micro_batches) {
  auto problem = std::make_shared<Problem>();
  problem->model = load_model("llama-3-70b").value();
  problem->model.name = "llama-3-405b";
  problem->model.num_layers = 126;
  problem->model.d_model = 16384;
  problem->model.d_ff = 53248;
  problem->model.num_heads = 128;
  problem->cluster =
      load_cluster("16384xh100", {.cores = 1, .memory = Bytes{8e9}, .cpu_model = "", .id = ""})
          .value();
  problem->workload = {.name = "pretrain",
                       .seq_len = 8192,
                       .global_batch = 128 * micro_batches,
                       .tokens = {},
                       .precision = Precision::kBf16};
  const Layout layout{.dp_shard = 128,
                      .tp = 8,
                      .sp = true,
                      .pp = 16,
                      .virtual_stages = virtual_stages,
                      .zero_stage = 1,
                      .schedule = schedule};
  return *validate(problem, layout).plan;
}

int64_t num_actions(const Program& program) {
  int64_t n = 0;
  for (const auto& list : program.stages) n += static_cast<int64_t>(list.size());
  return n;
}

ScheduleKind kind_of(const benchmark::State& state) {
  return static_cast<ScheduleKind>(state.range(0));
}
int parts_of(ScheduleKind kind) {
  return kind == ScheduleKind::kInterleaved ? 7 : kind == ScheduleKind::kZbV ? 2 : 1;
}

/// The events alone.
void play_program(benchmark::State& state) {
  const ScheduleKind kind = kind_of(state);
  const Plan plan = llama_405b(kind, parts_of(kind), 1024);
  const CostModel cost(plan.cluster(), nullptr);
  StageCostCache cache;
  const StageCosts costs(plan, cost, cache);
  const Program program = build_program(plan, costs.placements(), plan.num_micro_batches());
  for (auto _ : state) {
    const Timeline timeline =
        ProgramPlayer(plan, program, costs, EventLoop(std::nullopt, 1.0)).play();
    benchmark::DoNotOptimize(timeline.ranks.data());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * num_actions(program));
  state.SetLabel(std::string(to_string(kind)));
}

/// Expanding the plan, playing it, memory and report: what `simulate` does, with 32 micro-batches.
void simulate_step(benchmark::State& state) {
  const ScheduleKind kind = kind_of(state);
  const Plan plan = llama_405b(kind, parts_of(kind), 32);
  const CostModel cost(plan.cluster(), nullptr);
  for (auto _ : state) {
    const Simulation s = simulate(plan, cost);
    benchmark::DoNotOptimize(s.report.step_time);
  }
  state.SetLabel(std::string(to_string(kind)) + ", 16384 devices");
}

BENCHMARK(play_program)->DenseRange(0, kNumScheduleKinds - 1)->Unit(benchmark::kMillisecond);
BENCHMARK(simulate_step)->DenseRange(0, kNumScheduleKinds - 1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace meshwright

BENCHMARK_MAIN();
