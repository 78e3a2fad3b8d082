// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator/simulate.h"

#include <algorithm>

#include "sim/simulator/peak_memory.h"
#include "sim/simulator/program_player.h"
#include "sim/simulator/stage_costs.h"

namespace meshwright {

Simulation simulate(const Plan& plan, const CostModel& cost) {
  StageCostCache cache;
  return simulate(plan, cost, cache);
}

Simulation simulate(const Plan& plan, const CostModel& cost, StageCostCache& cache) {
  const StageCosts costs(plan, cost, cache);
  const Program program = build_program(plan, costs.placements(), plan.num_micro_batches());
  Simulation out;
  out.timeline =
      ProgramPlayer(
          plan, program, costs, EventLoop(plan.cluster().shared_cores, cost.oversubscription()))
          .play();
  out.report = terms_of_slowest_rank(out.timeline, Mesh(plan.layout()));
  const Seconds straggling = out.report.step_time * plan.cluster().scale_slowdown();
  out.report[Term::kOther] += straggling;
  out.report.step_time += straggling;
  const StagePeak peak = peak_memory(plan, program, costs);
  out.peak_stage = peak.stage;
  out.report.peak_memory = peak.memory.peak;
  out.report.memory = peak.memory.at_peak;
  out.report.memory_bound = memory_bound(plan, peak.memory);
  const double tokens = static_cast<double>(plan.workload().tokens_per_step());
  out.tokens_per_s = tokens / out.report.step_time.v;
  out.bubble_fraction = out.report[Term::kBubble] / out.report.step_time;
  out.fits = out.report.memory_bound->upper <= plan.cluster().capacity();
  return out;
}

}  // namespace meshwright
