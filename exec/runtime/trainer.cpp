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
        link(plan, program, *groups.pipeline),
        gradients(params, groups, plan, rank),
        update(params, groups, plan.workload().optimizer) {
    if (options.fault == Fault::kSkippedAllReduce && plan.layout().tp > 1)
      blocks.skip_first_sum_of_block_1();
    if (options.fault == Fault::kDoubledNormTerm) gradients.count_every_copy();
    blocks.on_operator(options.on_operator);
    for (auto& tensors : arriving_) tensors.resize(static_cast<size_t>(plan.stage_map().size()));
    for (auto& tensors : leaving_) tensors.resize(static_cast<size_t>(plan.stage_map().size()));
  }

  StepResult step(int64_t index);
  void start_step(int64_t index);
  void run(const Action& a);
  void grad_norm();

  void forward(const Action& a);
  void backward(const Action& a);
  void hand_on(int stage, Direction d, at::Tensor t);

  /// What a virtual stage works on next: its input or the gradient of its output, or the same of
  /// the block that it has come to.
  at::Tensor& arriving(Direction d, int stage) {
    return arriving_[static_cast<int>(d)][static_cast<size_t>(stage)];
  }
  /// Its result, until it is sent.
  at::Tensor& leaving(Direction d, int stage) {
    return leaving_[static_cast<int>(d)][static_cast<size_t>(stage)];
  }

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

  Action action;                                      ///< That runs or ran last.
  std::vector<at::Tensor> arriving_[2], leaving_[2];  ///< Per direction and virtual stage.
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
      const BucketTensors& b = params.bucket(i);
      const bool sharded = params.table().optimizer_sharded();
      const at::Tensor& g = sharded ? b.own_grads : b.grads;
      options.on_gradients(i,
                           sharded ? b.owned.begin : 0,
                           {g.const_data_ptr<float>(), static_cast<size_t>(g.numel())});
    }
  }
  // All ranks of a tensor-parallel group hold the same loss: one of them counts it.
  std::array<double, 2> sums{gradients.sum_of_squares(), coord.tp == 0 ? blocks.loss_sum() : 0.0};
  groups.world->all_reduce(wrap(sums));
  result.grad_norm = std::sqrt(sums[0]);
  result.loss = sums[1] / static_cast<double>(std::max<int64_t>(1, counted_tokens));
  update.start_step(step_index, result.grad_norm);
}

/// The result of a virtual stage goes to the next one, on this rank or by a send.
void Trainer::Impl::hand_on(int stage, Direction d, at::Tensor t) {
  const VirtualStage& v = plan.stage_map()[stage];
  const int to = d == Direction::kForward ? v.next : v.previous;
  if (to < 0) return;  // the loss, or the gradient of token ids
  const bool here = plan.stage_map()[to].rank == v.rank;
  at::Tensor& place = here ? arriving(d, to) : leaving(d, stage);
  MW_CHECK(!place.defined(), "a result overtakes the one before it");
  place = std::move(t);
}

/// Of a virtual stage or of some of its blocks.
void Trainer::Impl::forward(const Action& a) {
  at::Tensor& at_stage = arriving(Direction::kForward, a.virtual_stage);
  at::Tensor x = std::exchange(at_stage, at::Tensor{});
  for (int b = a.block_begin; b < a.block_end; ++b)
    x = blocks.forward(b, a.micro_batch, std::move(x));
  if (a.block_end == plan.stage_map()[a.virtual_stage].block_end) {
    hand_on(a.virtual_stage, Direction::kForward, std::move(x));
  } else {
    at_stage = std::move(x);
  }
}

/// Of a virtual stage or of some of its blocks.
void Trainer::Impl::backward(const Action& a) {
  at::Tensor& at_stage = arriving(Direction::kBackward, a.virtual_stage);
  at::Tensor g = std::exchange(at_stage, at::Tensor{});
  for (int b = a.block_end - 1; b >= a.block_begin; --b) {
    params.open_gradients(b);
    g = a.kind == ActionKind::kBackward ? blocks.backward(b, a.micro_batch, std::move(g))
                                        : blocks.backward_input(b, a.micro_batch, std::move(g));
  }
  if (a.block_begin == plan.stage_map()[a.virtual_stage].block_begin) {
    hand_on(a.virtual_stage, Direction::kBackward, std::move(g));
  } else {
    at_stage = std::move(g);
  }
}

void Trainer::Impl::run(const Action& a) {
  switch (a.kind) {
    case ActionKind::kForward:
      return forward(a);
    case ActionKind::kRecompute:
      for (int b = a.block_begin; b < a.block_end; ++b) blocks.recompute(b, a.micro_batch);
      return;
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
      return backward(a);
    case ActionKind::kBackwardWeight:
      for (int b = a.block_end - 1; b >= a.block_begin; --b)
        blocks.backward_weight(b, a.micro_batch);
      return;
    case ActionKind::kSend: {
      const at::Tensor t = std::exchange(leaving(a.direction, a.virtual_stage), at::Tensor{});
      return link.send(a, t);
    }
    case ActionKind::kPostRecv:
      return link.post_recv(a);
    case ActionKind::kRecv:
      arriving(a.direction, a.virtual_stage) = link.recv(a);
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
    case ActionKind::kRelease:
      return params.release(a.bucket);
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
  const BucketTensors& b = impl_->params.bucket(bucket);
  const at::Tensor& w = impl_->params.shards_weights(bucket) ? b.own_params : b.params;
  return {w.const_data_ptr<float>(), static_cast<size_t>(w.numel())};
}

void Trainer::max_over_ranks(std::span<double> values) {
  impl_->groups.world->all_reduce(wrap(values), ReduceOp::kMax);
}

void Trainer::sum_over_ranks(std::span<double> values) {
  impl_->groups.world->all_reduce(wrap(values));
}

}  // namespace meshwright
