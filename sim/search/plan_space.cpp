// SPDX-License-Identifier: Apache-2.0
#include "sim/search/plan_space.h"

#include <algorithm>
#include <cmath>

#include "sim/step/plan_problem.h"

namespace meshwright {
namespace {

constexpr double kMaxContextDegree = 64;
constexpr double kMinTokensPerContextRank = 1024;

std::vector<double> at_most(std::vector<double> values, double limit) {
  std::erase_if(values, [&](double v) { return v > limit; });
  return values;
}

bool shards_heads(const ModelShape& model, double tp) {
  if (std::fmod(model.hidden, tp) != 0) return false;
  for (int i = 0; i < model.num_kinds; ++i) {
    const BlockShape& b = model.kinds[static_cast<size_t>(i)];
    if (std::fmod(b.attention.num_heads, tp) != 0 || std::fmod(b.mamba.num_heads, tp) != 0 ||
        std::fmod(b.ffn.width, tp) != 0) {
      return false;
    }
  }
  return true;
}

double most_experts(const ModelShape& model) {
  double experts = 0;
  for (int i = 0; i < model.num_kinds; ++i) {
    experts = std::max(experts, model.kinds[static_cast<size_t>(i)].ffn.num_experts);
  }
  return experts;
}

}  // namespace

std::optional<PlanSearch> plan_search(const Problem& problem) {
  const std::optional<StepStack> stack = step_stack(problem.cluster);
  if (!stack) return std::nullopt;
  PlanSearch plan;
  plan.problem.model = model_shape(problem.model);
  plan.problem.device = stack->device;
  plan.problem.links = stack->links;
  plan.problem.framework = stack->framework;
  plan.problem.work.seq = static_cast<double>(problem.workload.seq_len);
  plan.problem.work.global_batch = static_cast<double>(problem.workload.global_batch);
  plan.problem.work.packed = problem.workload.attention_span() / plan.problem.work.seq;
  const StepProblem& p = plan.problem;
  SearchSpace& s = plan.space;
  s.devices = problem.cluster.num_devices;
  s.global_batch = p.work.global_batch;
  const std::vector<double> degrees = divisors_of(s.devices);
  // Beyond two nodes a layer is all communication.
  s.tp = at_most(degrees, 2 * p.links.devices_per_node);
  std::erase_if(s.tp, [&](double tp) { return !shards_heads(p.model, tp); });
  s.pp = at_most(degrees, p.model.num_layers());
  s.cp = at_most(degrees, kMaxContextDegree);
  std::erase_if(s.cp,
                [&](double cp) { return cp > 1 && p.work.seq / cp < kMinTokensPerContextRank; });
  const double experts = most_experts(p.model);
  if (experts > 0) s.ep = at_most(divisors_of(experts), s.devices);
  s.equal_stages = false;
  s.every_interleave = true;
  s.max_interleave = 16;
  s.schedules = {StepSchedule::kOneFOneB,
                 StepSchedule::kZeroBubble1,
                 StepSchedule::kZeroBubble2,
                 StepSchedule::kZeroBubbleV};
  s.zero = {0, 1, 3};
  return plan;
}

}  // namespace meshwright
