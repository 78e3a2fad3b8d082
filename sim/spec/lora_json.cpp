// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/lora_json.h"

namespace meshwright {

Json lora_to_json(const LoraSpec& lora) {
  return {{"rank", lora.rank}, {"base", kBaseFormatNames(lora.base)}};
}

Result<LoraSpec> lora_from_json(const Json& json,
                                const std::string& origin,
                                const std::string& pointer,
                                std::optional<BaseFormat> base) {
  ObjectReader r(json, origin, pointer);
  const LoraSpec lora{.rank = static_cast<int>(r.integer("rank", {1, 65536})),
                      .base = r.word("base", kBaseFormatNames, base)};
  MW_RETURN_IF_ERROR(r.finish());
  return lora;
}

}  // namespace meshwright
