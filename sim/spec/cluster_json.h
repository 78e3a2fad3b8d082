// JSON form of a cluster, device and link: one reader for the documents that people write
// (models/hardware, --cluster FILE) and for those that a plan file holds. For .cpp files only.
#pragma once

#include "sim/core/json_reader.h"
#include "sim/spec/cluster_spec.h"

namespace meshwright {

enum class ClusterForm : uint8_t {
  kHardware,  ///< By people: memory in GiB, what has a default may be left out, notes are allowed.
  kPlan,      ///< By us: memory in bytes, complete, so that a plan never takes a later default.
};

/// The device, its node and its links, without names and counts. Memory of a CPU is the machine's:
/// a hardware document does not state it.
[[nodiscard]] ClusterSpec read_cluster(ObjectReader& r, ClusterForm form);

/// The link under `key`, "intra_node" or "inter_node"; errors are those of `parent`.
[[nodiscard]] LinkSpec read_link(ObjectReader& parent,
                                 const std::string& key,
                                 bool required,
                                 ClusterForm form);

/// ClusterForm::kPlan; cluster_from_json() gives the cluster again but for what only operator
/// studies need of its device (architecture, aliases, cache, clock).
[[nodiscard]] Json cluster_to_json(const ClusterSpec& cluster);
[[nodiscard]] Result<ClusterSpec> cluster_from_json(const Json& json,
                                                    const std::string& origin,
                                                    const std::string& pointer);

}  // namespace meshwright
