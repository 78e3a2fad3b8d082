// SPDX-License-Identifier: Apache-2.0
#include "sim/step/step_memory.h"

#include <algorithm>
#include <cmath>

namespace meshwright {
namespace {

/// Bytes per logit alive at the loss. torch cross entropy: BF16 logits, FP32 copy, FP32 log-softmax
/// and its gradient; eager adds the BF16 gradient, sharded logits (DTensor loss parallel) an FP32
/// temporary more. Megatron's vocabulary-parallel loss: BF16 logits, FP32 copy that becomes the
/// softmax in place, BF16 gradient; fused: logits and gradient.
double loss_bytes_per_logit(const StepProblem& p, const ShardLayout& s, bool torch) {
  if (p.work.fused_loss) return 4;
  if (!torch) return s.tp > 1 ? 8 : 6;  // without shards the FP32 copy becomes the gradient too
  return 14 + (p.work.compiled ? 0 : 2) + (s.tp > 1 ? 6 : 0);
}

double attention_bytes(const StepProblem& p, const ShardLayout& s, const AttentionShape& a) {
  if (a.num_heads == 0) return 0;
  const double t = s.tp;
  const double sp = p.work.sequence_parallel ? t : 1;
  const double h = p.model.hidden;
  const double heads = a.num_heads / t;
  const double kv = std::max(1.0, a.num_kv_heads / t);
  // Norm in, mask; qkv in, which stays whole where backward does not gather it again.
  double per_token = (2 * h + (p.model.dropout > 0 ? h : 0)) / sp + 2 * h / (s.regathers ? sp : 1);
  if (a.kv_lora_rank > 0) {
    // Down-projections before and after their norms, query, key, the buffer of key and value.
    per_token += 4 * a.q_lora_rank + 4 * a.kv_lora_rank + 2 * a.rope_head_dim;
    per_token += 4 * heads * a.head_dim + 2 * heads * (a.head_dim - a.rope_head_dim + a.v_head_dim);
  } else {
    per_token += 2 * heads * a.head_dim + 2 * kv * (a.head_dim + a.v_head_dim);
  }
  per_token += 2 * heads * a.v_head_dim;  // input of the output projection
  if (p.work.attention == AttentionKernel::kUnfused && p.work.recompute != RecomputeKind::kCore) {
    // Softmax, dropout mask, dropout output; without dropout the softmax alone.
    per_token += (p.model.dropout > 0 ? 5 : 2) * heads * p.work.seq;
  }
  return per_token;
}

double ffn_bytes(const StepProblem& p, const ShardLayout& s, const FfnShape& f) {
  if (f.width + f.num_experts == 0) return 0;
  const double t = s.tp;
  const double sp = p.work.sequence_parallel ? t : 1;
  const double h = p.model.hidden;
  const double per_width = p.model.gated_ffn ? 6 : 4;  // both halves and their product
  double per_token = (2 * h + (p.model.dropout > 0 ? h : 0)) / sp + per_width * f.width / t +
                     2 * h / (s.regathers ? sp : 1);
  if (f.num_experts > 0) {
    const double in = f.latent > 0 ? f.latent : h;
    // Rows in and out of the experts, which every rank of a split expert has whole.
    per_token +=
        f.top_k / t * (4 * in * s.expert_tp + per_width * f.expert_width) + 8 * f.num_experts / sp;
  }
  return per_token;
}

double mamba_bytes(const StepProblem& p, const ShardLayout& s, const MambaShape& m) {
  if (m.inner == 0) return 0;
  const double sp = p.work.sequence_parallel ? s.tp : 1;
  return 4 * p.model.hidden / sp + (14 * m.inner + 4 * m.groups * m.state) / s.tp;
}

double tokens_of(const StepProblem& p, const ShardLayout& s) {
  return s.micro_batch * p.work.seq / s.cp;
}

struct StageParams {
  double dense = 0, experts = 0;
  double largest = 0;  ///< One layer.
};

/// Layers from the model's start, or from its end: dense layers come before expert layers.
StageParams stage_params(const StepProblem& p, const StepLayout& l, double layers, bool last) {
  StageParams sum;
  double left = layers;
  for (int i = 0; i < p.model.num_kinds && left > 0; ++i) {
    const int kind = last ? p.model.num_kinds - 1 - i : i;
    const BlockShape& b = p.model.kinds[static_cast<size_t>(kind)];
    const double count = std::min(left, b.count);
    left -= count;
    const double dense = dense_parameters_of_rank(p.model, b, l.shard.tp);
    const double experts = expert_parameters(p.model, b) / (l.shard.ep * l.shard.expert_tp);
    sum.dense += count * dense;
    sum.experts += count * experts;
    sum.largest = std::max(sum.largest, dense + experts);
  }
  return sum;
}

/// Less what the host holds: two layers' weights, or two layers' activations, are at hand.
void apply_offload(const StepProblem& p, const StepLayout& l, double layers, StepMemory& m) {
  const double at_hand = std::min(1.0, 2 / std::max(1.0, layers));
  if (l.offload.weights) m.weights_bytes *= at_hand;
  if (l.offload.activations && p.work.recompute != RecomputeKind::kFull)
    m.activations_bytes *= std::min(1.0, at_hand / micro_batches_in_flight(l, 0));
  if (l.offload.optimizer) m.optimizer_bytes = 0;
}

enum class Stage : uint8_t { kFirst, kSecond, kLast };

StepMemory stage_memory(const StepProblem& p,
                        StateConvention convention,
                        const StepLayout& l,
                        Stage stage) {
  const bool last = stage == Stage::kLast;
  const bool first = stage == Stage::kFirst || l.pp == 1;
  const double layers = last ? l.layers_last : first ? l.layers_first : l.layers_max;
  const double table = p.model.hidden * p.model.vocab / l.shard.tp;
  StageParams params = stage_params(p, l, l.pp == 1 ? p.model.num_layers() : layers, last);
  if (first) params.dense += embedding_parameters_of_rank(p.model, l.shard.tp);
  if (last) {
    params.dense += final_norm_parameters(p.model);
    if (l.pp > 1 || !p.model.tied_embeddings) params.dense += table;
  }
  StepMemory memory = state_memory(convention, l, params.dense, params.experts);

  const double tokens = tokens_of(p, l.shard);
  const double sp = p.work.sequence_parallel ? l.shard.tp : 1;
  const double in_flight = micro_batches_in_flight(l, last ? l.pp - 1 : first ? 0 : 1);
  memory.activations_bytes = in_flight * layers * mean_saved_bytes(p, l.shard);
  if (first) {
    memory.activations_bytes +=
        in_flight * tokens * p.model.hidden * (p.model.dropout > 0 ? 1 : 0) / sp;
  }
  const bool torch = convention == StateConvention::kTorchFsdp;
  if (last) {
    memory.logits_bytes =
        tokens * p.model.vocab / l.shard.tp * loss_bytes_per_logit(p, l.shard, torch);
    memory.activations_bytes += 4 * tokens * p.model.hidden / sp;  // final norm, input of the head
  }
  if (torch && l.zero == 3) {
    if (l.pp > 1) {
      // A pipeline keeps its stage unsharded: BF16 weight and gradient, FP32 accumulated gradient;
      // and one received activation per micro-batch.
      memory.gathered_bytes =
          8 * (params.dense + params.experts) + l.micro_batches * 2 * tokens * p.model.hidden / sp;
    } else {
      // Two layers in BF16; the largest table or layer with its FP32 gradient.
      memory.gathered_bytes = 4 * params.largest + 6 * std::max(params.largest, last ? table : 0.0);
    }
    // Inputs that tensor parallelism gathers along the sequence, and their gradient.
    if (l.shard.tp > 1) {
      memory.workspace_bytes += (p.work.async_tp ? 4 : 6) * tokens * p.model.hidden;
    }
  }
  if (p.work.recompute == RecomputeKind::kFull) {
    StepProblem whole = p;
    whole.work.recompute = RecomputeKind::kNone;
    const double one = mean_saved_bytes(whole, l.shard);
    // The layer being recomputed; on the last stage it follows the loss, whose logits are gone.
    memory.workspace_bytes += last ? std::max(0.0, one - memory.logits_bytes) : one;
  }
  apply_offload(p, l, layers, memory);
  return memory;
}

}  // namespace

double mean_saved_bytes(const StepProblem& p, const ShardLayout& s) {
  double sum = 0, layers = 0;
  for (int i = 0; i < p.model.num_kinds; ++i) {
    const BlockShape& b = p.model.kinds[static_cast<size_t>(i)];
    sum += b.count * saved_activation_bytes(p, s, b);
    layers += b.count;
  }
  return sum / layers;
}

double saved_activation_bytes(const StepProblem& p, const ShardLayout& s, const BlockShape& block) {
  const double tokens = tokens_of(p, s);
  const double sp = p.work.sequence_parallel ? s.tp : 1;
  const double h = p.model.hidden;
  const double all = tokens * (attention_bytes(p, s, block.attention) +
                               mamba_bytes(p, s, block.mamba) + ffn_bytes(p, s, block.ffn));
  const double input = 2 * tokens * h / sp;
  switch (p.work.recompute) {
    case RecomputeKind::kNone:
    case RecomputeKind::kCore:
      return all;
    case RecomputeKind::kFull:
      return input;
    case RecomputeKind::kHalfLayers:
      return (all + input) / 2;
    case RecomputeKind::kOps:
      break;
  }
  // Every second matmul's output (query, value, first half of the gate, down), the attention
  // output and the block's input.
  const AttentionShape& a = block.attention;
  const double kept = 2 * h / sp + (4 * a.num_heads * a.head_dim +
                                    2 * a.num_kv_heads * a.v_head_dim + 2 * block.ffn.width) /
                                       s.tp;
  return input + tokens * kept;
}

double micro_batches_in_flight(const StepLayout& l, double rank) {
  if (l.pp == 1) return 1;
  switch (l.schedule) {
    case StepSchedule::kZeroBubble1:
    case StepSchedule::kZeroBubbleV:
      return std::min(l.micro_batches, l.pp);
    case StepSchedule::kZeroBubble2:
      return std::min(l.micro_batches, 2 * l.pp - 1);
    case StepSchedule::kOneFOneB:
      break;
  }
  if (l.vpp <= 1) return std::min(l.micro_batches, l.pp - rank);
  // Warm-up chunks 2 (p - r - 1) + (v - 1) p, one more in steady state; a stage has v chunks.
  const double chunks = 2 * (l.pp - rank - 1) + (l.vpp - 1) * l.pp + 1;
  return std::min(l.micro_batches, chunks / l.vpp);
}

StepMemory state_memory(StateConvention convention,
                        const StepLayout& l,
                        double dense,
                        double experts) {
  const double group = std::max(1.0, l.dp * l.shard.cp);
  const double expert_group = std::max(1.0, group * l.shard.tp / (l.shard.ep * l.shard.expert_tp));
  const double all = dense + experts;
  const auto sharded = [&](int from_stage) {
    return l.zero >= from_stage ? dense / group + experts / expert_group : all;
  };
  StepMemory m;
  switch (convention) {
    case StateConvention::kMegatron:
      m.weights_bytes = 2 * (l.zero >= 3 ? sharded(3) : all);
      m.gradients_bytes = 4 * (l.zero >= 2 ? sharded(2) : all);
      m.optimizer_bytes = 12 * sharded(1);
      break;
    case StateConvention::kDeepSpeed:
      m.weights_bytes = 2 * sharded(3);
      m.gradients_bytes = 2 * sharded(2);
      m.optimizer_bytes = 16 * sharded(1);  // with gradients cast to FP32 for the update
      break;
    case StateConvention::kDeepSpeedBf16:
      m.weights_bytes = 2 * sharded(3);
      m.gradients_bytes = 6 * sharded(2);
      m.optimizer_bytes = 12 * sharded(1);
      break;
    case StateConvention::kTorchFsdp:
      m.weights_bytes = 4 * sharded(3);
      m.gradients_bytes = 4 * sharded(2);
      m.optimizer_bytes = 8 * sharded(1);
      break;
    case StateConvention::kFp32:
      m.weights_bytes = 4 * all;
      m.gradients_bytes = 4 * all;
      m.optimizer_bytes = 8 * sharded(1);
      break;
  }
  return m;
}

StepMemory last_stage_memory(const StepProblem& p,
                             StateConvention convention,
                             const StepLayout& l) {
  return stage_memory(p, convention, l, Stage::kLast);
}

StepMemory peak_memory(const StepProblem& p, StateConvention convention, const StepLayout& l) {
  StepMemory peak = stage_memory(p, convention, l, Stage::kLast);
  const auto take_fuller = [&](Stage stage) {
    const StepMemory m = stage_memory(p, convention, l, stage);
    if (m.allocated_bytes() > peak.allocated_bytes()) peak = m;
  };
  if (l.pp > 1) take_fuller(Stage::kFirst);
  if (l.pp > 2) take_fuller(Stage::kSecond);
  return peak;
}

// Context and NCCL about 3 GB; 16 % held by PyTorch's caching allocator on published fp16 runs.
double device_memory(double allocated_bytes) { return 1.16 * allocated_bytes + 3e9; }

double memory_upper_bound(double allocated_bytes) {
  return (1 + kAllocatorShare) * allocated_bytes + kLibraryWorkspaceBytes;
}

}  // namespace meshwright
