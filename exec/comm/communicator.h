// Process groups of one job: what a rank uses to talk to the others.
//
// Feeds: every executor file that moves a tensor between ranks. The work is done by c10d's Gloo
// back end (exec/comm/gloo_backend.h); this layer adds the group bookkeeping and the promise that
// no operation makes a hidden tensor copy, because the memory model counts bytes exactly
// (tests/unit/exec holds it to zero):
//   all_reduce      in place.
//   reduce_scatter  c10d's own is an all-reduce on a clone of the input (measured: one more copy of
//   it). Here
//                   it is an all-reduce in place, so it sends twice the bytes of a real
//                   reduce-scatter, but allocates nothing and gives bitwise the sums of all_reduce.
//   all_gather      every c10d call builds a flat copy of the output. Here each rank sends its
//   shard to each
//                   other rank and receives theirs in place: the same bytes as a ring, no copy.
// What no tensor allocator sees: Gloo's all-reduce takes a scratch of its own, see
// all_reduce_scratch_bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace at {
class Tensor;
}

namespace meshwright {

enum class ReduceOp { kSum, kMax };

/// Operations in flight. Holds their tensors until wait(); until then nobody may read, write or
/// reset the buffers. Destroying it without wait() waits too, but drops an error. Movable, not
/// thread-safe.
class Pending {
 public:
  Pending();
  Pending(Pending&&) noexcept;
  Pending& operator=(Pending&&) noexcept;  ///< Waits for what it held before.
  ~Pending();

  /// Blocks until all is done and lets go of the tensors. Throws what the operation failed with,
  /// for example c10::Error or Gloo's std::exception after the time-out. A second call does
  /// nothing.
  void wait();

  /// True from an asynchronous call until wait(), also when there was nothing to send.
  bool valid() const;

 private:
  friend class Communicator;
  struct State;
  explicit Pending(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// One process group: a distinct list of global ranks. All ranks of the group must make the same
/// collective calls in the same order. Tensors are contiguous and on the CPU; float, double or
/// int64 for reductions. An empty tensor and a group of one rank communicate nothing. Not
/// thread-safe.
class Communicator {
 public:
  ~Communicator();

  int rank() const;  ///< Index of this process in the group.
  int size() const;  ///< Ranks in the group.

  /// Reduces `t` over the group, in place.
  void all_reduce(const at::Tensor& t, ReduceOp op = ReduceOp::kSum);
  Pending all_reduce_async(const at::Tensor& t, ReduceOp op = ReduceOp::kSum);

  /// `in` [n*k, ...] is clobbered; `out` [k, ...] becomes this rank's shard of the sum. `out` may
  /// be that shard of `in`.
  void reduce_scatter(const at::Tensor& out, const at::Tensor& in);
  /// `flat` [n*k, ...]: after wait() this rank's shard holds the sum and the rest is unspecified.
  Pending reduce_scatter_in_place_async(const at::Tensor& flat);

  /// `out` [n*k, ...] becomes all shards `in` [k, ...] in rank order. `in` may be this rank's shard
  /// of `out`.
  void all_gather(const at::Tensor& out, const at::Tensor& in);
  /// `flat` [n*k, ...]: this rank's shard is spread to all, the others are filled in.
  Pending all_gather_in_place_async(const at::Tensor& flat);

  /// Point to point. `dst` and `src` are indices in the group, `tag` is in [0, 2^24). Messages of
  /// one pair and tag arrive in order. A send completes when the peer has received, so two ranks
  /// that send to each other must not both wait before they receive. A size that differs from the
  /// peer's ends the process (Gloo throws on its event thread).
  Pending send_async(const at::Tensor& t, int dst, int tag);
  Pending recv_async(const at::Tensor& t, int src, int tag);
  void recv(const at::Tensor& t, int src, int tag);

  /// Returns when every rank of the group has called it.
  void barrier();

  /// Heap bytes that Gloo's ring all-reduce of `bytes` takes while it runs: two ring segments of at
  /// most 1 MiB. At most two operations of a group run at once. Not in the allocator's figures; 0
  /// for a group of one.
  static int64_t all_reduce_scratch_bytes(int64_t bytes, int group_size, int element_bytes);

 private:
  friend class CommWorld;
  struct Impl;
  explicit Communicator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The connection to all ranks of the job. Creates each distinct group once. Not thread-safe.
class CommWorld {
 public:
  /// @param store_url  "file:PATH" (c10d::FileStore, ranks of this machine, loopback only; PATH
  /// must not be left
  ///                   from an earlier job) or "tcp:HOST:PORT" (c10d::TCPStore, rank 0 listens).
  /// @param timeout    Longest wait for a peer, in rendezvous and in every operation.
  /// Throws c10::Error when the store cannot be reached; std::invalid_argument for another kind of
  /// URL.
  static std::unique_ptr<CommWorld> connect(const std::string& store_url,
                                            int rank,
                                            int world_size,
                                            std::chrono::milliseconds timeout);
  ~CommWorld();

  int rank() const;
  int world_size() const;

  /// The group of `ranks` (distinct global ranks, in the order that numbers the shards). All ranks
  /// of the job call this with the same sequence of lists; a rank outside the list gets nullptr.
  /// The same list again gives the same group. Blocks until the members are connected.
  std::shared_ptr<Communicator> group(const std::vector<int>& ranks);

 private:
  struct Impl;
  explicit CommWorld(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace meshwright
