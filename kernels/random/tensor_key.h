// A stable number for a parameter's name, so that two tensors of one seed draw different random
// numbers.
#pragma once

#include <cstdint>
#include <string_view>

namespace meshwright::kernels {

/// FNV-1a, 64 bits, of the global (unsharded) name, e.g. "layers.3.attention.wq". Part of the
/// checkpoint contract: the same name gives the same key on every machine and in every version.
[[nodiscard]] std::uint64_t tensor_key(std::string_view global_name);

}  // namespace meshwright::kernels
