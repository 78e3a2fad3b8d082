// SPDX-License-Identifier: Apache-2.0
// The operations of a group on c10d's calls, each chosen so that no tensor is copied behind our
// back.
#include "exec/comm/communicator.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <utility>

#include "exec/comm/communicator_impl.h"
#include "exec/comm/pending_state.h"
#include "sim/core/check.h"

namespace meshwright {

namespace {

constexpr int kUserTags = 1 << 24;
// all_gather sends under tags of its own, which the caller's tags cannot reach. They may repeat
// after a while: messages of one pair and tag keep their order.
constexpr int kGatherTag = 1 << 30;
constexpr int kGatherTags = 1 << 20;

void check_buffer(const at::Tensor& t) {
  MW_CHECK(t.is_cpu() && t.is_contiguous(),
           "a communication buffer must be contiguous, on the CPU");
}

int64_t shard_rows(const at::Tensor& flat, int group_size) {
  check_buffer(flat);
  MW_CHECK(flat.dim() >= 1 && flat.size(0) % group_size == 0,
           "dim 0 must be a multiple of the group size " + std::to_string(group_size));
  return flat.size(0) / group_size;
}

at::Tensor shard_of(const at::Tensor& flat, int index, int group_size) {
  const int64_t rows = shard_rows(flat, group_size);
  return flat.narrow(0, index * rows, rows);
}

// Copies unless both are the same memory already.
void place(const at::Tensor& to, const at::Tensor& from) {
  MW_CHECK(to.numel() == from.numel(), "a shard must be 1/size of the whole");
  if (to.const_data_ptr() != from.const_data_ptr()) to.copy_(from.view(to.sizes()));
}

}  // namespace

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Communicator::~Communicator() = default;

int Communicator::rank() const { return impl_->rank; }

int Communicator::size() const { return impl_->size; }

Pending Communicator::all_reduce_async(const at::Tensor& t, ReduceOp op) {
  check_buffer(t);
  auto state = std::make_unique<Pending::State>();
  if (impl_->backend && t.numel() > 0) {
    state->tensors.push_back(t);
    c10d::AllreduceOptions options;
    options.reduceOp = op == ReduceOp::kSum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
    // c10d's thread lets go of its tensor a moment after wait() returns, so it gets one that owns
    // nothing: the caller's memory is free when the caller drops it, not whenever that thread runs.
    std::vector<at::Tensor> alias{at::from_blob(t.data_ptr(), t.sizes(), t.options())};
    state->works.push_back(impl_->backend->allreduce(alias, options));
  }
  return Pending(std::move(state));
}

void Communicator::all_reduce(const at::Tensor& t, ReduceOp op) { all_reduce_async(t, op).wait(); }

Pending Communicator::reduce_scatter_in_place_async(const at::Tensor& flat) {
  shard_rows(flat, impl_->size);
  return all_reduce_async(flat);
}

void Communicator::reduce_scatter(const at::Tensor& out, const at::Tensor& in) {
  check_buffer(out);
  reduce_scatter_in_place_async(in).wait();
  place(out, shard_of(in, impl_->rank, impl_->size));
}

Pending Communicator::all_gather_in_place_async(const at::Tensor& flat) {
  shard_rows(flat, impl_->size);
  auto state = std::make_unique<Pending::State>();
  if (!impl_->backend || flat.numel() == 0) return Pending(std::move(state));
  const int tag = kGatherTag + impl_->num_gathers;
  impl_->num_gathers = (impl_->num_gathers + 1) % kGatherTags;
  state->tensors.push_back(flat);
  std::vector<at::Tensor> own{shard_of(flat, impl_->rank, impl_->size)};
  // Receives first: a message that arrives then has its place. The peer order is rotated, so that
  // not all ranks send to rank 0 first.
  for (int step = 1; step < impl_->size; ++step) {
    const int src = (impl_->rank - step + impl_->size) % impl_->size;
    std::vector<at::Tensor> theirs{shard_of(flat, src, impl_->size)};
    state->works.push_back(impl_->backend->recv(theirs, src, tag));
  }
  for (int step = 1; step < impl_->size; ++step) {
    const int dst = (impl_->rank + step) % impl_->size;
    state->works.push_back(impl_->backend->send(own, dst, tag));
  }
  return Pending(std::move(state));
}

void Communicator::all_gather(const at::Tensor& out, const at::Tensor& in) {
  check_buffer(in);
  place(shard_of(out, impl_->rank, impl_->size), in);
  all_gather_in_place_async(out).wait();
}

Pending Communicator::send_async(const at::Tensor& t, int dst, int tag) {
  check_buffer(t);
  MW_CHECK(dst >= 0 && dst < impl_->size && dst != impl_->rank, "dst " + std::to_string(dst));
  MW_CHECK(tag >= 0 && tag < kUserTags, "tag " + std::to_string(tag));
  auto state = std::make_unique<Pending::State>();
  if (t.numel() > 0) {
    state->tensors.push_back(t);
    state->works.push_back(impl_->backend->send(state->tensors, dst, tag));
  }
  return Pending(std::move(state));
}

Pending Communicator::recv_async(const at::Tensor& t, int src, int tag) {
  check_buffer(t);
  MW_CHECK(src >= 0 && src < impl_->size && src != impl_->rank, "src " + std::to_string(src));
  MW_CHECK(tag >= 0 && tag < kUserTags, "tag " + std::to_string(tag));
  auto state = std::make_unique<Pending::State>();
  if (t.numel() > 0) {
    state->tensors.push_back(t);
    state->works.push_back(impl_->backend->recv(state->tensors, src, tag));
  }
  return Pending(std::move(state));
}

void Communicator::recv(const at::Tensor& t, int src, int tag) { recv_async(t, src, tag).wait(); }

void Communicator::barrier() {
  if (impl_->backend) impl_->backend->barrier()->wait();
}

int64_t Communicator::all_reduce_scratch_bytes(int64_t bytes, int group_size, int element_bytes) {
  if (group_size <= 1 || bytes == 0) return 0;
  constexpr int64_t kMaxSegmentBytes = 1 << 20;
  const auto ceil_div = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t wanted = std::max<int64_t>(ceil_div(bytes, kMaxSegmentBytes), 2 * group_size);
  const int64_t num_segments = ceil_div(wanted, group_size) * group_size;
  return 2 * ceil_div(ceil_div(bytes, num_segments), element_bytes) * element_bytes;
}

}  // namespace meshwright
