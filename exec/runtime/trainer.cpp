// SPDX-License-Identifier: Apache-2.0
#include "exec/runtime/trainer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "exec/runtime/block_executor.h"
#include "exec/runtime/gradient_sync.h"
#include "exec/runtime/pipeline_link.h"
#include "exec/runtime/process_groups.h"
#include "exec/runtime/weight_update.h"
#include "sim/mesh/mesh.h"

namespace meshwright {
namespace {

/// steady_clock is CLOCK_MONOTONIC: one clock for all processes of a machine.
double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A tensor over `values`, which costs no counted byte.
at::Tensor wrap(std::span<double> values) {
  return at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kDouble);
}

}  // namespace

struct Trainer::Impl {
  Impl(const Plan& the_plan,
       CommWorld& world,
       const SampleSource& samples,
       TrainerOptions the_options)
      : plan(the_plan),
        options(std::move(the_options)),
        rank(world.rank()),
        coord(Mesh(plan.layout()).coord(rank)),
        program(build_program(plan)),
        params(plan, rank),
        groups(make_process_groups(world, plan, params.table())),
        batches(samples, plan, Mesh(plan.layout()).dp_index(rank)),
        blocks(plan, rank, params, *groups.tp, batches),
        link(plan, coord.pp, *groups.pipeline),
        gradients(params, groups, plan, rank),
        update(params, groups, plan.workload().optimizer) {
    if (options.fault == Fault::kSkippedAllReduce && plan.layout().tp > 1)
      blocks.skip_first_sum_of_block_1();
    if (options.fault == Fault::kDoubledNormTerm) gradients.count_every_copy();
    blocks.on_operator(options.on_operator);
  }

  StepResult step(int64_t index);
  void start_step(int64_t index);
  void run(const Action& a);
  void grad_norm();

  at::Tensor& carried(Direction d) { return carried_[static_cast<int>(d)]; }

  Plan plan;
  TrainerOptions options;
  int rank;
  MeshCoord coord;
  Program program;
  ParameterStore params;
  ProcessGroups groups;
  BatchReader batches;
  BlockExecutor blocks;
  PipelineLink link;
  GradientSync gradients;
  WeightUpdate update;

  Action action;  ///< That runs or ran last.
  /// Between actions: a block's output or, backwards, the gradient of its input.
  at::Tensor carried_[2];
  int64_t step_index = 0;
  int64_t counted_tokens = 0;
  StepResult result;
};

void Trainer::Impl::start_step(int64_t index) {
  step_index = index;
  result = {};
  result.learning_rate = learning_rate(plan.workload().optimizer, index);
  result.tokens = plan.workload().tokens_per_step();
  const BatchReader::TokenCounts counts = batches.count_tokens(index);
  counted_tokens = counts.global;
  const int64_t divisor = options.fault == Fault::kWrongLossScale ? counts.own : counts.global;
  blocks.start_step(index, 1.0F / static_cast<float>(std::max<int64_t>(1, divisor)));
  params.start_step();
  if (options.fault == Fault::kSkippedAllReduce && plan.layout().tp == 1)
    gradients.skip_next_reduce();
}

void Trainer::Impl::grad_norm() {
  link.finish_sends();
  if (options.on_gradients) {
    for (int i = 0; i < params.num_buckets(); ++i) {
      const at::Tensor& g = params.bucket(i).grads;
      options.on_gradients(i, {g.const_data_ptr<float>(), static_cast<size_t>(g.numel())});
    }
  }
  // All ranks of a tensor-parallel group hold the same loss: one of them counts it.
  std::array<double, 2> sums{gradients.sum_of_squares(), coord.tp == 0 ? blocks.loss_sum() : 0.0};
  groups.world->all_reduce(wrap(sums));
  result.grad_norm = std::sqrt(sums[0]);
  result.loss = sums[1] / static_cast<double>(std::max<int64_t>(1, counted_tokens));
  update.start_step(step_index, result.grad_norm);
}

void Trainer::Impl::run(const Action& a) {
  switch (a.kind) {
    case ActionKind::kForward: {
      at::Tensor& x = carried(Direction::kForward);
      for (int b = a.block_begin; b < a.block_end; ++b) {
        at::Tensor input = std::exchange(x, at::Tensor{});
        x = blocks.forward(b, a.micro_batch, std::move(input));
      }
      return;
    }
    case ActionKind::kRecompute:
      for (int b = a.block_begin; b < a.block_end; ++b) blocks.recompute(b, a.micro_batch);
      return;
    case ActionKind::kBackward: {
      at::Tensor& g = carried(Direction::kBackward);
      for (int b = a.block_end - 1; b >= a.block_begin; --b) {
        at::Tensor grad = std::exchange(g, at::Tensor{});
        g = blocks.backward(b, a.micro_batch, std::move(grad));
      }
      return;
    }
    case ActionKind::kBackwardInput:
    case ActionKind::kBackwardWeight:
    case ActionKind::kPostRecv:
      MW_CHECK(false, "executor_refuses() lets no such action through");
      return;
    case ActionKind::kSend: {
      const at::Tensor t = std::exchange(carried(a.direction), at::Tensor{});
      return link.send(a.direction, a.micro_batch, t);
    }
    case ActionKind::kRecv:
      carried(a.direction) = link.recv(a.direction, a.micro_batch);
      return;
    case ActionKind::kSumCopies:
      return gradients.sum_copies(a.bucket);
    case ActionKind::kSumTied:
      return gradients.sum_tied(a.bucket);
    case ActionKind::kReduce:
      return gradients.start_reduce(a.bucket);
    case ActionKind::kWaitReduce:
      return gradients.wait_reduce(a.bucket);
    case ActionKind::kGradNorm:
      return grad_norm();
    case ActionKind::kOptimizer:
      return update.update(a.bucket);
    case ActionKind::kGather:
      return update.start_gather(a.bucket);
    case ActionKind::kWaitGather:
      return update.wait_gather(a.bucket);
  }
}

StepResult Trainer::Impl::step(int64_t index) {
  const at::NoGradGuard no_grad;
  const double start = now_s();
  start_step(index);
  RankTimeline timeline{.rank = rank, .step_start_s = start, .step_end_s = start, .spans = {}};
  const std::vector<Action>& actions = program.stages[static_cast<size_t>(coord.pp)];
  timeline.spans.reserve(actions.size());
  for (const Action& a : actions) {
    action = a;
    const double begin = now_s();
    run(a);
    const OperatorTimes times = blocks.take_times();
    timeline.spans.push_back({.action = a,
                              .start_s = begin,
                              .end_s = now_s(),
                              .compute_s = times.compute_s,
                              .comm_s = times.comm_s});
  }
  timeline.step_end_s = now_s();
  result.timeline = std::move(timeline);
  return std::move(result);
}

Trainer::Trainer(const Plan& plan,
                 CommWorld& world,
                 const SampleSource& samples,
                 TrainerOptions options)
    : impl_(std::make_unique<Impl>(plan, world, samples, std::move(options))) {}

Trainer::~Trainer() = default;

StepResult Trainer::step(int64_t step) { return impl_->step(step); }

std::string Trainer::current_action() const { return to_string(impl_->action, impl_->coord.pp); }

ResidentBytes Trainer::resident_bytes() const {
  return {.weights = impl_->params.weight_bytes(),
          .gradients = impl_->params.gradient_bytes(),
          .optimizer = impl_->params.optimizer_bytes(),
          .other = impl_->blocks.table_bytes()};
}

const PlacementTable& Trainer::table() const { return impl_->params.table(); }

const RankPlacement& Trainer::placement() const { return impl_->params.placement(); }

std::span<const float> Trainer::weights(int bucket) const {
  const at::Tensor& w = impl_->params.bucket(bucket).params;
  return {w.const_data_ptr<float>(), static_cast<size_t>(w.numel())};
}

void Trainer::max_over_ranks(std::span<double> values) {
  impl_->groups.world->all_reduce(wrap(values), ReduceOp::kMax);
}

void Trainer::sum_over_ranks(std::span<double> values) {
  impl_->groups.world->all_reduce(wrap(values));
}

}  // namespace meshwright
