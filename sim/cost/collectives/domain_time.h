// Time of a collective inside one NVLink or PCIe domain, as NCCL runs it.
//
// S bytes of the full tensor (what nccl-tests prints as size), n ranks, chunk c = S/n, steps k =
// 2(n-1) for all-reduce and n-1 for all-gather and reduce-scatter. A rank moves W = S (f(n-1) +
// gamma)/n with f = 2 or 1: gamma is the copy of its own chunk, which no wire carries but which the
// same warps do; it is why two ranks are slower than (n-1)/n says.
//
//   LL     : a + k h + W/B
//   LL128  : a + d + ((k h)^q + (W/B)^q)^(1/q)          q shared by all links
//   Simple : a + d + ((k h)^q + (W/B)^q)^(1/q)          q per generation
//   all-to-all : a' + (n-1) h' + min(W'/B_LL, d + W'/B_S),  W' = S (n-1+gamma')/n
//   send/recv  : a + h + S/B, LL or Simple: one step of the ring
//   NVLS   : a + (D + S/(C u)) t(u),  t(u) = l + C u/B;  all-reduce of 6 ranks and more
//
// Up to a chunk of `ll128_max_chunk_bytes` NCCL takes the faster of LL and LL128, above it Simple
// although LL128 would often be faster: measured times jump there (B200, 8 ranks, all-gather: 44 us
// at 8 MiB, 104 us at 16 MiB). NVLS works in loops of C = channels x ranks chunks of u bytes; u is
// 16, 32, 64 or 128 KiB by NCCL's own rule (src/enqueue.cc, calcCollChunking), so that time per
// byte falls in steps of size: 244, 300, 430, 480 GB/s on eight B200.
//
// Where a switch would make a larger message cheaper, the time just below the switch holds, so that
// time is monotone in bytes. Ignored: buffer registration, copy engines, graph launches, the L2
// boundary (7-15 % around 16 MiB).
#pragma once

#include "sim/spec/calibration.h"
#include "sim/spec/collective_constants.h"

namespace meshwright {

struct DomainGroup {
  int num_ranks = 1;
  /// Of one device in one direction; 0: the generation's own.
  double line_rate_GBps = 0;
  bool nvls = true;  ///< Off where the user disabled it (NCCL_NVLS_ENABLE=0).
};

/// Microseconds of `op` over `bytes`; one rank costs zero. Monotone in bytes and in 1 / line rate.
[[nodiscard]] double domain_time_us(const NcclConstants& nccl,
                                    const LinkConstants& link,
                                    CommOp op,
                                    double bytes,
                                    const DomainGroup& group);

/// A chunk of the NVLS pipeline for a message of `bytes` over `concurrent` = channels x ranks.
[[nodiscard]] double nvls_chunk_bytes(double bytes, double concurrent);

/// One loop over all channels and ranks in chunks of `chunk_bytes`.
[[nodiscard]] double nvls_loop_us(const LinkConstants& link,
                                  double concurrent,
                                  double chunk_bytes,
                                  double rate_scale);

/// (a^q + b^q)^(1/q).
[[nodiscard]] double overlapped(double a, double b, double q);

/// 2 for all-reduce, which passes the ring twice; else 1.
[[nodiscard]] double ring_passes(CommOp op);

}  // namespace meshwright
