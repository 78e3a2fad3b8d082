// The header of a safetensors checkpoint against the model its config.json states, without reading
// a weight.
//
// Format (huggingface/safetensors): 8 bytes little-endian header length, then JSON {name: {dtype,
// shape, data_offsets}}. Reads: every *.safetensors of a folder. Feeds: load_model().
#pragma once

#include <string>

#include "sim/spec/model_spec.h"

namespace meshwright {

/// The folder holds at least one safetensors file.
[[nodiscard]] bool has_safetensors(const std::string& folder);

/// Checks names, shapes and dtypes of all shards together. Errors name the file, the tensor, its
/// shape and the one that the config asks for: a header that is cut off, larger than the format's
/// 100 MB, or no JSON; offsets outside the file; a tensor that is missing, has another shape, or is
/// stored twice. Tensors that the model does not know (rotary tables, multi-token prediction,
/// quantisation scales) are ignored.
[[nodiscard]] Result<Ok> check_safetensors(const std::string& folder, const ModelSpec& model);

}  // namespace meshwright
