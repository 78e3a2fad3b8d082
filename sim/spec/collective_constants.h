// Constants of NCCL's collectives: one set per link generation, one per network class.
//
// Reads: models/fits/collectives.json, written by the fit of sim/fit/collective_fit.h. Feeds:
// sim/cost/collectives. A set belongs to a generation of links, never to a device, an operation or
// a group size: NVLink4 of H100 and of H200 is one set.
//
// Plain doubles with units in their names, since these are what the fit moves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/core/result.h"

namespace meshwright {

/// One wire protocol of NCCL on a ring. A rate of zero means that the link does not use it.
struct ProtocolConstants {
  double base_us = 0;    ///< Beyond LinkConstants::base_us.
  double hop_us = 0;     ///< Per step of the ring.
  double rate_GBps = 0;  ///< One direction, per rank.
};

/// Messages from each rank to each other, all at once.
struct AllToAllConstants {
  double base_us = 0;
  double peer_us = 0;  ///< Per peer.
  double ll_rate_GBps = 0;
  double simple_rate_GBps = 0;  ///< Its extra base is the Simple protocol's.
  double local_copy = 0;        ///< As LinkConstants::local_copy.
};

/// In-switch reduction (NVLink SHARP). Zero channels: the link has none.
struct NvlsConstants {
  double loop_us = 0;    ///< Synchronisation of one loop over all channels and heads.
  double rate_GBps = 0;  ///< Bytes of the tensor per time inside a loop.
  int channels = 0;      ///< NCCL's NVLS_NCHANNELS_*.
};

struct LinkConstants {
  std::string generation;  ///< "nvlink4", "pcie5", ...
  /// One direction per device; the rates below were measured at it and scale with it.
  double line_rate_GBps = 0;
  double base_us = 0;  ///< One collective of any protocol.
  ProtocolConstants ll, ll128, simple;
  /// q of (latency^q + transfer^q)^(1/q) in the Simple protocol: 1 adds, infinity overlaps fully.
  double simple_overlap = 1;
  /// Copy of a rank's own chunk, in units of a ring step's transfer.
  double local_copy = 0;
  /// Bytes per rank up to which NCCL keeps LL128; 0: the fastest protocol at every size.
  double ll128_max_chunk_bytes = 0;
  /// Of two ranks below one root complex; 0: as any other group.
  double pair_rate_GBps = 0;
  AllToAllConstants all_to_all;
  NvlsConstants nvls;
  /// 80 % interval of measured / predicted on groups that the fit had not seen.
  double measured_low = 1, measured_high = 1;
};

/// Between nodes.
struct NetworkConstants {
  std::string generation;     ///< "ib_ndr", "ib_hdr", "efa", "tcpxo".
  double line_rate_GBps = 0;  ///< One direction per NIC.
  double efficiency = 1;      ///< Of the line rate, reached by large messages.
  double ll_hop_us = 0;
  double simple_hop_us = 0;
  /// Loops of the in-switch tree's chunks until the pipeline over the network is full.
  double fill_loops = 0;
  /// LL128 needs a network that keeps the order of 128-byte lines.
  bool ll128 = true;
  double measured_low = 1, measured_high = 1;
};

/// What holds for every link.
struct NcclConstants {
  double ll128_overlap = 1;      ///< q of the LL128 protocol, as LinkConstants::simple_overlap.
  double nvls_fill_loops = 0;    ///< Loops until the pipeline through the switch is full.
  int nvls_min_ranks = 0;        ///< Smaller groups use the ring.
  double nvls_min_bytes = 0;     ///< From here on NVLS whatever the ring would take.
  double nvls_from_bytes = 0;    ///< Between here and nvls_min_bytes the faster of the two.
  double ll128_hop_over_ll = 1;  ///< Network hop of LL128 over LL's.
};

struct CollectiveConstants {
  NcclConstants nccl;
  std::vector<LinkConstants> links;
  std::vector<NetworkConstants> networks;

  /// Nothing where no set has that name.
  [[nodiscard]] const LinkConstants* link(std::string_view generation) const;
  [[nodiscard]] const NetworkConstants* network(std::string_view generation) const;
  [[nodiscard]] std::vector<std::string> link_names() const;
  [[nodiscard]] std::vector<std::string> network_names() const;
};

/// Errors: not a document of this form.
[[nodiscard]] Result<CollectiveConstants> parse_collective_constants(std::string_view json,
                                                                     const std::string& origin);

/// The built-in document.
[[nodiscard]] const CollectiveConstants& collective_constants();

}  // namespace meshwright
