// ClusterSpec: the devices, how they are grouped into nodes, and the links between them.
//
// Reads: a built-in ("64xa100-80g", "4xlocal") or the user's JSON. Feeds: sim/cost and the planner.
// Figures come from data sheets and published fits (models/hardware/*.json names each source); a
// Calibration replaces them on the machine it was measured on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/result.h"
#include "sim/core/units.h"

namespace meshwright {

enum class DeviceKind { kGpu, kCpu };

struct DeviceSpec {
  std::string name;
  std::string architecture;          ///< "hopper", ...: devices whose fitted constants are alike.
  std::vector<std::string> aliases;  ///< Other names of it in published tables.
  DeviceKind kind = DeviceKind::kGpu;
  FlopPerSecond peak_bf16;
  FlopPerSecond peak_fp32;
  FlopPerSecond peak_fp8;  ///< Zero where the tensor cores have no fp8.
  BytesPerSecond memory_bandwidth;
  Bytes memory;                   ///< What the driver or the machine reports as usable, per device.
  BytesPerSecond host_bandwidth;  ///< To the host's memory, one direction; zero: not known.
  Bytes host_memory;              ///< This device's share of it.
  BytesPerSecond nvme_bandwidth;  ///< This device's share of local drives, at the slower of reading
                                  ///< and writing; zero: none.
  Bytes reserved;                 ///< Taken before the first tensor: context and libraries.
  int num_sms = 1;                ///< Compute units that a matmul's tiles are dealt to.
  Bytes l2_cache;
  double boost_clock_GHz = 1;             ///< At which the peak holds.
  double matmul_fraction = 1;             ///< Of peak, reached by large matmuls.
  double attention_forward_fraction = 1;  ///< Of peak, reached by flash attention.
  double attention_backward_fraction = 1;
  double memory_fraction = 1;    ///< Of memory_bandwidth, reached by elementwise kernels.
  Seconds launch;                ///< Per operator, on the device.
  Seconds host_per_layer;        ///< Host time to issue one layer's forward.
  Seconds host_per_micro_batch;  ///< Data loading and start of one micro-batch, not hidden.

  friend bool operator==(const DeviceSpec&, const DeviceSpec&) = default;
};

/// What one device sees of a link. With a generation that models/fits/collectives.json knows,
/// collectives are priced by its constants; else time of one message = base + alpha per hop + bytes
/// / (bandwidth * efficiency).
struct LinkSpec {
  BytesPerSecond bandwidth;  ///< One direction, per device.
  /// Without a generation, of bandwidth, reached by collectives. With one, of what nccl-tests reach
  /// alone on the machine.
  double efficiency = 1;
  Seconds alpha;           ///< Per ring step; without a generation.
  Seconds base;            ///< Per operation; without a generation.
  std::string generation;  ///< "nvlink4", "ib_ndr", ...; empty: none.

  friend bool operator==(const LinkSpec&, const LinkSpec&) = default;
};

struct ClusterSpec {
  std::string name;
  DeviceSpec device;
  int num_devices = 1;
  int devices_per_node = 1;  ///< The last node may be partial.
  LinkSpec intra_node;
  LinkSpec inter_node;
  /// Fraction by which a step grows per doubling of the nodes: stragglers.
  double scale_slowdown_per_doubling = 0;
  /// Cores that all ranks of a node share (CPU ranks); nothing where each rank has a device of its
  /// own.
  std::optional<int> shared_cores;
  std::optional<double> price_usd_per_device_hour;

  [[nodiscard]] bool is_local() const { return device.kind == DeviceKind::kCpu; }
  [[nodiscard]] int num_nodes() const {
    return (num_devices + devices_per_node - 1) / devices_per_node;
  }
  [[nodiscard]] Bytes capacity() const { return device.memory - device.reserved; }
  /// What stragglers add to a step over all nodes, as a fraction of it.
  [[nodiscard]] double scale_slowdown() const;
  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;
};

/// Facts of the machine this process runs on, read once in main.
struct MachineFacts {
  int cores = 1;
  Bytes memory;
  std::string cpu_model;
  std::string
      id;  ///< Stable name of this machine: a hash of CPU model, cores, memory and machine-id.
};
[[nodiscard]] MachineFacts read_machine_facts();

/// "64xa100-80g" (64 devices in nodes of 8), "4xlocal" (4 ranks sharing this machine), or a path to
/// our JSON. Errors: unknown device (lists the known ones), a count that is not from 1 to 1e6,
/// unknown keys, a quantity without its unit.
[[nodiscard]] Result<ClusterSpec> load_cluster(const std::string& name_or_path,
                                               const MachineFacts& machine);

/// The same cluster with another number of devices; ranks that share one machine share its memory
/// anew.
[[nodiscard]] ClusterSpec with_devices(ClusterSpec cluster, int num_devices);

[[nodiscard]] std::vector<std::string> builtin_devices();

/// The built-in GPU of this name or alias, or nothing.
[[nodiscard]] const DeviceSpec* find_builtin_gpu(std::string_view name_or_alias);

}  // namespace meshwright
