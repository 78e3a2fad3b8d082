// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/collectives/domain_time.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace meshwright {
namespace {

constexpr double kBytesPerUsOfGBps = 1e3;  // 1 GB/s = 1000 bytes per microsecond
constexpr double kKiB = 1024;
constexpr double kNvlsMinChunk = 16 * kKiB;
constexpr double kNvlsMaxChunk = 128 * kKiB;

/// One ring collective with its sizes worked out.
struct Ring {
  double steps = 0;
  double bytes_moved = 0;
};

Ring ring_of(const LinkConstants& link, CommOp op, double bytes, int n) {
  const double passes = ring_passes(op);
  return {passes * (n - 1), bytes * (passes * (n - 1) + link.local_copy) / n};
}

double wire_us(double bytes, double rate_GBps, double scale) {
  return bytes / (rate_GBps * scale * kBytesPerUsOfGBps);
}

double ll_us(const LinkConstants& link, const Ring& ring, double scale) {
  if (link.ll.rate_GBps <= 0) return std::numeric_limits<double>::infinity();
  return link.base_us + link.ll.base_us + ring.steps * link.ll.hop_us +
         wire_us(ring.bytes_moved, link.ll.rate_GBps, scale);
}

double ll128_us(const NcclConstants& nccl,
                const LinkConstants& link,
                const Ring& ring,
                double scale) {
  if (link.ll128.rate_GBps <= 0) return std::numeric_limits<double>::infinity();
  return link.base_us + link.ll128.base_us +
         overlapped(ring.steps * link.ll128.hop_us,
                    wire_us(ring.bytes_moved, link.ll128.rate_GBps, scale),
                    nccl.ll128_overlap);
}

double simple_us(const LinkConstants& link, const Ring& ring, int n, double scale) {
  const bool pair = n == 2 && link.pair_rate_GBps > 0;
  return link.base_us + link.simple.base_us +
         overlapped(
             ring.steps * link.simple.hop_us,
             wire_us(ring.bytes_moved, pair ? link.pair_rate_GBps : link.simple.rate_GBps, scale),
             link.simple_overlap);
}

double small_us(const NcclConstants& nccl,
                const LinkConstants& link,
                const Ring& ring,
                double scale) {
  return std::min(ll_us(link, ring, scale), ll128_us(nccl, link, ring, scale));
}

double ring_us(const NcclConstants& nccl,
               const LinkConstants& link,
               CommOp op,
               double bytes,
               int n,
               double scale) {
  const Ring ring = ring_of(link, op, bytes, n);
  const double small = small_us(nccl, link, ring, scale);
  const double simple = simple_us(link, ring, n, scale);
  if (link.ll128_max_chunk_bytes <= 0) return std::min(small, simple);
  const double switch_bytes = link.ll128_max_chunk_bytes * n;
  if (bytes <= switch_bytes) return small;
  return std::max(simple, small_us(nccl, link, ring_of(link, op, switch_bytes, n), scale));
}

/// One step of the ring, in the faster protocol.
double message_us(const LinkConstants& link, double bytes, double scale) {
  const double simple = link.simple.hop_us + wire_us(bytes, link.simple.rate_GBps, scale);
  const double ll = link.ll.hop_us + wire_us(bytes, link.ll.rate_GBps, scale);
  return link.base_us + (link.ll.rate_GBps > 0 ? std::min(ll, simple) : simple);
}

double all_to_all_us(const LinkConstants& link, double bytes, int n, double scale) {
  const AllToAllConstants& a = link.all_to_all;
  const double moved = bytes * (n - 1 + a.local_copy) / n;
  const double simple = link.simple.base_us + wire_us(moved, a.simple_rate_GBps, scale);
  const double ll = a.ll_rate_GBps > 0 ? wire_us(moved, a.ll_rate_GBps, scale) : simple;
  return a.base_us + (n - 1) * a.peer_us + std::min(ll, simple);
}

/// Message size from which NCCL takes twice `chunk`: 2 loops of 32 KiB, 8 of 64, 64 of 128.
double nvls_next_chunk_from(double chunk, double concurrent) {
  if (chunk < 32 * kKiB) return 2 * concurrent * 32 * kKiB;
  if (chunk < 64 * kKiB) return 8 * concurrent * 64 * kKiB;
  return chunk < kNvlsMaxChunk ? 64 * concurrent * kNvlsMaxChunk
                               : std::numeric_limits<double>::infinity();
}

double nvls_us(
    const NcclConstants& nccl, const LinkConstants& link, double bytes, int n, double scale) {
  const double concurrent = static_cast<double>(link.nvls.channels) * n;
  const double largest = nvls_chunk_bytes(bytes, concurrent);
  double t = 0;
  for (double chunk = kNvlsMinChunk; chunk <= largest; chunk *= 2) {
    // A smaller chunk's time just below its end keeps the sum monotone.
    const double upto = std::min(bytes, nvls_next_chunk_from(chunk, concurrent));
    const double loops = nccl.nvls_fill_loops + upto / (concurrent * chunk);
    t = std::max(t, link.base_us + loops * nvls_loop_us(link, concurrent, chunk, scale));
  }
  return t;
}

}  // namespace

double overlapped(double a, double b, double q) {
  if (q == 1) return a + b;
  const double larger = std::max(a, b);
  if (larger <= 0) return 0;
  return larger * std::pow(1 + std::pow(std::min(a, b) / larger, q), 1 / q);
}

double ring_passes(CommOp op) { return op == CommOp::kAllReduce ? 2 : 1; }

double nvls_chunk_bytes(double bytes, double concurrent) {
  double chunk = kNvlsMinChunk;
  while (chunk < kNvlsMaxChunk && bytes >= nvls_next_chunk_from(chunk, concurrent)) chunk *= 2;
  return chunk;
}

double nvls_loop_us(const LinkConstants& link, double concurrent, double chunk, double scale) {
  return link.nvls.loop_us + wire_us(concurrent * chunk, link.nvls.rate_GBps, scale);
}

double domain_time_us(const NcclConstants& nccl,
                      const LinkConstants& link,
                      CommOp op,
                      double bytes,
                      const DomainGroup& group) {
  const int n = group.num_ranks;
  if (n <= 1) return 0;
  const double scale = group.line_rate_GBps > 0 ? group.line_rate_GBps / link.line_rate_GBps : 1.0;
  if (op == CommOp::kSendRecv) return message_us(link, bytes, scale);
  if (op == CommOp::kAllToAll) return all_to_all_us(link, bytes, n, scale);
  const double ring = ring_us(nccl, link, op, bytes, n, scale);
  const bool nvls = group.nvls && link.nvls.channels > 0 && op == CommOp::kAllReduce &&
                    n >= nccl.nvls_min_ranks && bytes >= nccl.nvls_from_bytes;
  if (!nvls) return ring;
  const double switched = nvls_us(nccl, link, bytes, n, scale);
  const double chosen = bytes >= nccl.nvls_min_bytes ? switched : std::min(ring, switched);
  return std::max(chosen, ring_us(nccl, link, op, nccl.nvls_from_bytes, n, scale));
}

}  // namespace meshwright
