// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/param_roles.h"

namespace meshwright {

ParamSlot slot_of(ParamRole role) {
  switch (role) {
    case ParamRole::kEmbedding:
      return ParamSlot::kTable;
    case ParamRole::kPosition:
      return ParamSlot::kPosition;
    case ParamRole::kAttnNorm:
      return ParamSlot::kAttnNorm;
    case ParamRole::kAttnNormBias:
      return ParamSlot::kAttnNormBias;
    case ParamRole::kQuery:
    case ParamRole::kKey:
    case ParamRole::kValue:
      return ParamSlot::kQkv;
    case ParamRole::kQueryBias:
    case ParamRole::kKeyBias:
    case ParamRole::kValueBias:
      return ParamSlot::kQkvBias;
    case ParamRole::kQueryNorm:
      return ParamSlot::kQueryNorm;
    case ParamRole::kKeyNorm:
      return ParamSlot::kKeyNorm;
    case ParamRole::kQueryDown:
    case ParamRole::kKvDown:
      return ParamSlot::kLatentDown;
    case ParamRole::kQueryDownNorm:
      return ParamSlot::kQueryDownNorm;
    case ParamRole::kQueryUp:
      return ParamSlot::kQueryUp;
    case ParamRole::kKvDownNorm:
      return ParamSlot::kKvDownNorm;
    case ParamRole::kKvUp:
      return ParamSlot::kKvUp;
    case ParamRole::kAttnOut:
      return ParamSlot::kAttnOut;
    case ParamRole::kAttnOutBias:
      return ParamSlot::kAttnOutBias;
    case ParamRole::kPostAttnNorm:
      return ParamSlot::kPostAttnNorm;
    case ParamRole::kFfnNorm:
      return ParamSlot::kFfnNorm;
    case ParamRole::kFfnNormBias:
      return ParamSlot::kFfnNormBias;
    case ParamRole::kGate:
    case ParamRole::kUp:
      return ParamSlot::kGateUp;
    case ParamRole::kUpBias:
      return ParamSlot::kUpBias;
    case ParamRole::kDown:
      return ParamSlot::kDown;
    case ParamRole::kDownBias:
      return ParamSlot::kDownBias;
    case ParamRole::kPostFfnNorm:
      return ParamSlot::kPostFfnNorm;
    case ParamRole::kRouter:
      return ParamSlot::kRouter;
    case ParamRole::kRouterBias:
      return ParamSlot::kRouterBias;
    case ParamRole::kExpertGate:
    case ParamRole::kExpertUp:
      return ParamSlot::kExpertGateUp;
    case ParamRole::kExpertDown:
      return ParamSlot::kExpertDown;
    case ParamRole::kSharedGate:
    case ParamRole::kSharedUp:
      return ParamSlot::kSharedGateUp;
    case ParamRole::kSharedDown:
      return ParamSlot::kSharedDown;
    case ParamRole::kSharedExpertGate:
      return ParamSlot::kSharedExpertGate;
    case ParamRole::kFinalNorm:
      return ParamSlot::kFinalNorm;
    case ParamRole::kFinalNormBias:
      return ParamSlot::kFinalNormBias;
    case ParamRole::kLmHead:
      return ParamSlot::kLmHead;
    case ParamRole::kMtpNorm:
    case ParamRole::kMtpProjection:
      break;  // not listed by logical_tensors()
  }
  return ParamSlot::kNone;
}

TpSplit tp_split(ParamRole role) {
  switch (role) {
    case ParamRole::kEmbedding:
    case ParamRole::kLmHead:
    case ParamRole::kQuery:
    case ParamRole::kKey:
    case ParamRole::kValue:
    case ParamRole::kQueryBias:
    case ParamRole::kKeyBias:
    case ParamRole::kValueBias:
    case ParamRole::kQueryUp:
    case ParamRole::kKvUp:
    case ParamRole::kGate:
    case ParamRole::kUp:
    case ParamRole::kUpBias:
    case ParamRole::kExpertGate:
    case ParamRole::kExpertUp:
    case ParamRole::kSharedGate:
    case ParamRole::kSharedUp:
      return TpSplit::kRows;
    case ParamRole::kAttnOut:
    case ParamRole::kDown:
    case ParamRole::kExpertDown:
    case ParamRole::kSharedDown:
      return TpSplit::kColumns;
    default:
      return TpSplit::kReplicated;
  }
}

bool partial_without_sp(ParamRole role) {
  switch (role) {
    case ParamRole::kQueryNorm:
    case ParamRole::kKeyNorm:
    case ParamRole::kQueryDown:
    case ParamRole::kQueryDownNorm:
    case ParamRole::kKvDown:
    case ParamRole::kKvDownNorm:
    case ParamRole::kRouter:
    case ParamRole::kSharedExpertGate:
      return true;
    default:
      return false;
  }
}

bool is_kv(ParamRole role) {
  return role == ParamRole::kKey || role == ParamRole::kValue || role == ParamRole::kKeyBias ||
         role == ParamRole::kValueBias;
}

}  // namespace meshwright
