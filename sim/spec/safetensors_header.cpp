// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "sim/core/json_reader.h"
#include "sim/core/unaligned.h"
#include "sim/spec/logical_tensors.h"

namespace meshwright {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr size_t kLengthBytes = 8;

struct StoredTensor {
  std::string file;
  std::vector<int64_t> shape;
};
using StoredTensors = std::map<std::string, StoredTensor>;

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::vector<std::filesystem::path> shards_of(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ec)) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Result<Ok> read_header(const std::filesystem::path& path, StoredTensors& out) {
  const std::string name = path.string();
  std::ifstream in(path, std::ios::binary);
  std::error_code ec;
  const uint64_t file_bytes = std::filesystem::file_size(path, ec);
  char length_bytes[kLengthBytes];
  if (!in || ec || !in.read(length_bytes, kLengthBytes)) {
    return Error{.where = name, .rule = "is too short for a safetensors header"};
  }
  const auto length = load_unaligned<uint64_t>(reinterpret_cast<const std::byte*>(length_bytes));
  if (length > kMaxHeaderBytes || length > file_bytes - kLengthBytes) {
    return Error{
        .where = name,
        .field = "header length",
        .value = std::to_string(length),
        .rule = fmt::format(
            "must be at most {} and inside the file of {} bytes", kMaxHeaderBytes, file_bytes),
        .remedy = "the file is cut off or no safetensors file: fetch it again"};
  }
  std::string text(length, '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(length))) {
    return Error{.where = name, .rule = "ends inside its header"};
  }
  MW_ASSIGN_OR_RETURN(const Json header, parse_json(text, name));
  const uint64_t data_bytes = file_bytes - kLengthBytes - length;
  for (const auto& [tensor, value] : header.items()) {
    if (tensor == "__metadata__") continue;
    ObjectReader r(value, name, "/" + tensor);
    r.text("dtype");
    const Json& offsets = r.array("data_offsets");
    StoredTensor stored{.file = path.filename().string()};
    for (const Json& dim : r.array("shape")) {
      if (!dim.is_number_unsigned()) r.fail("shape", dim.dump(), "must be whole numbers");
      stored.shape.push_back(dim.is_number_unsigned() ? dim.get<int64_t>() : 0);
    }
    const bool pair =
        offsets.size() == 2 && offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned();
    if (!pair || offsets[0] > offsets[1] || offsets[1].get<uint64_t>() > data_bytes) {
      r.fail("data_offsets", offsets.dump(), "must lie inside the file", "fetch the file again");
    }
    MW_RETURN_IF_ERROR(r.finish(false));
    if (!out.try_emplace(tensor, std::move(stored)).second) {
      return Error{.where = name, .field = tensor, .rule = "is stored in two shards"};
    }
  }
  return Ok{};
}

/// What the checkpoint stores for the model: stored name -> shape.
std::map<std::string, std::vector<int64_t>> expected_tensors(const ModelSpec& model) {
  std::map<std::string, std::vector<int64_t>> expected;
  std::set<std::string> transposed;
  for (const LogicalTensor& t : logical_tensors(model)) {
    std::vector<int64_t> shape = t.shape;
    if (shape.size() == 3) shape.erase(shape.begin());
    const std::string stored = t.name.substr(0, t.name.find('#'));
    const size_t star = stored.find('*');
    const int64_t copies = star == std::string::npos ? 1 : t.shape[0];
    for (int64_t i = 0; i < copies; ++i) {
      std::string name = stored;
      if (star != std::string::npos) name.replace(star, 1, std::to_string(i));
      const auto [it, fresh] = expected.try_emplace(name, shape);
      if (!fresh) it->second[0] += shape[0];  // parts of one stored tensor, one below the other
    }
    if (t.stored_transposed) transposed.insert(stored);
  }
  for (const std::string& name : transposed) {
    std::reverse(expected[name].begin(), expected[name].end());
  }
  return expected;
}

}  // namespace

bool has_safetensors(const std::string& folder) { return !shards_of(folder).empty(); }

Result<Ok> check_safetensors(const std::string& folder, const ModelSpec& model) {
  StoredTensors stored;
  for (const std::filesystem::path& shard : shards_of(folder)) {
    MW_RETURN_IF_ERROR(read_header(shard, stored));
  }
  // GPT-2's first releases leave the prefix out.
  const auto find = [&](const std::string& name) {
    auto it = stored.find(name);
    constexpr std::string_view kPrefix = "transformer.";
    if (it == stored.end() && name.starts_with(kPrefix)) {
      it = stored.find(name.substr(kPrefix.size()));
    }
    return it;
  };
  for (const auto& [name, shape] : expected_tensors(model)) {
    const auto it = find(name);
    if (it == stored.end()) {
      return Error{.where = folder,
                   .field = name,
                   .rule = fmt::format("is missing from the checkpoint; config.json asks for {}",
                                       shape_text(shape)),
                   .remedy = "use the config.json that belongs to these weights"};
    }
    if (it->second.shape != shape) {
      return Error{.where = folder + "/" + it->second.file,
                   .field = name,
                   .value = shape_text(it->second.shape),
                   .rule = fmt::format("must have the shape {} of config.json", shape_text(shape)),
                   .remedy = "use the config.json that belongs to these weights"};
    }
  }
  return Ok{};
}

}  // namespace meshwright
