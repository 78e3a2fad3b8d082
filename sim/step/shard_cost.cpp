// SPDX-License-Identifier: Apache-2.0
#include "sim/step/shard_cost.h"

#include <algorithm>
#include <cmath>

#include "sim/step/block_communication.h"
#include "sim/step/gemm_time.h"
#include "sim/step/step_memory.h"

namespace meshwright {
namespace {

constexpr double kBackwardElementwise = 1.6;
constexpr double kScoreBytesForward = 14;  // per score: softmax, mask, dropout over FP16
constexpr double kScoreBytesBackward = 20;
constexpr double kFlashRampTokens = 400;     // flash reaches half its rate at this length
constexpr double kFlashBackwardFlops = 2.5;  // five matmuls for two (arXiv:2205.14135)

class BlockPricer {
 public:
  BlockPricer(const StepProblem& problem, const ShardLayout& shard)
      : p_(problem),
        s_(shard),
        tokens_(shard.micro_batch * problem.work.seq / shard.cp),
        stream_(problem.framework.memory_fraction * problem.device.memory_bandwidth),
        linear_{.flops = linear_flops(),
                .num_sms = problem.device.num_sms,
                .bytes_per_second = stream_,
                .element_bytes = problem.work.precision == GemmPrecision::kBf16  ? 2.0
                                 : problem.work.precision == GemmPrecision::kFp4 ? 0.5
                                                                                 : 1.0,
                .gap_s = problem.framework.kernel_gap_s},
        head_{.flops = problem.device.peak_bf16 * problem.device.gemm_fraction,
              .num_sms = problem.device.num_sms,
              .bytes_per_second = stream_,
              .gap_s = problem.framework.kernel_gap_s} {}

  [[nodiscard]] BlockCost price(const BlockShape& block) {
    linear_f_ = dgrad_ = wgrad_ = elementwise_f_ = core_f_ = core_b_ = cast_f_ = cast_b_ = 0;
    collectives_ = 0;
    add_attention(block.attention);
    add_mamba(block.mamba);
    add_ffn(block.ffn);
    return combine(block);
  }

  [[nodiscard]] double head_time() const {
    const double h = p_.model.hidden;
    const double v = p_.model.vocab / s_.tp;
    double t = gemm_time(head_, tokens_, v, h) + gemm_time(head_, tokens_, h, v);
    if (!p_.work.lora) t += gemm_time(head_, h, v, tokens_);
    return t + p_.framework.loss_bytes_per_logit * tokens_ * v / stream_;
  }

  [[nodiscard]] double embed_time() const { return tokens_ * p_.model.hidden * 14 / stream_; }
  [[nodiscard]] double tokens() const { return tokens_; }

 private:
  [[nodiscard]] double linear_flops() const {
    const DeviceFacts& d = p_.device;
    switch (p_.work.precision) {
      case GemmPrecision::kBf16:
        return d.peak_bf16 * d.gemm_fraction;
      case GemmPrecision::kFp8:
        return d.peak_fp8 * d.fp8_fraction;
      case GemmPrecision::kFp8Rowwise:
        return d.peak_fp8 * d.fp8_fraction / p_.framework.rowwise_penalty;
      case GemmPrecision::kFp4:
        return d.peak_fp4 * d.fp4_fraction;
    }
    return 1;
  }

  void add_linear(double out, double in, double rows = -1, double count = 1, double slow = 1) {
    const double m = rows < 0 ? tokens_ : rows;
    linear_f_ += slow * gemm_time(linear_, m, out, in, count);
    dgrad_ += slow * gemm_time(linear_, m, in, out, count);
    if (!p_.work.lora) wgrad_ += slow * gemm_time(linear_, in, out, m, count);
    if (p_.work.precision == GemmPrecision::kBf16) return;
    // Read BF16, write both orientations in the narrow type.
    const double bytes = 4 * p_.framework.cast_traffic / stream_;
    cast_f_ += count * m * in * bytes;
    cast_b_ += count * m * out * bytes;
  }

  void add_elementwise(double bytes) {
    const double share =
        p_.work.compiled ? p_.framework.elementwise_compiled : p_.framework.elementwise;
    elementwise_f_ += share * bytes / stream_;
  }

  /// Norm, residual and dropout around one mixer, sharded by sequence parallelism.
  void add_residual() {
    const double h = p_.model.hidden;
    add_elementwise(tokens_ * h * (p_.model.dropout > 0 ? 11 : 8) /
                    (p_.work.sequence_parallel ? s_.tp : 1));
    ++collectives_;
  }

  void add_attention(const AttentionShape& a) {
    if (a.num_heads == 0) return;
    add_residual();
    const double h = p_.model.hidden;
    const double heads = a.num_heads / s_.tp;
    const double kv_heads = std::max(1.0, a.num_kv_heads / s_.tp);
    if (a.kv_lora_rank > 0) {
      const double q_in = a.q_lora_rank > 0 ? a.q_lora_rank : h;
      add_linear(a.q_lora_rank + a.kv_lora_rank + a.rope_head_dim, h);
      add_linear(heads * a.head_dim, q_in);
      add_linear(heads * (a.head_dim - a.rope_head_dim + a.v_head_dim), a.kv_lora_rank);
      add_elementwise(tokens_ * 8 * (a.q_lora_rank + a.kv_lora_rank));
    } else {
      add_linear(heads * a.head_dim + kv_heads * (a.head_dim + a.v_head_dim), h);
    }
    add_linear(h, heads * a.v_head_dim);
    add_elementwise(tokens_ * 8 * heads * a.head_dim);
    add_core(a, heads);
  }

  void add_core(const AttentionShape& a, double heads) {
    const double seq = p_.work.seq;
    const double dims = a.head_dim + a.v_head_dim;
    if (p_.work.attention == AttentionKernel::kFlash) {
      double seen = seq / 2 * p_.work.packed;
      if (a.window > 0 && a.window < seq) seen = std::min(seen, a.window);
      const double flops = 2 * tokens_ * seen * heads * dims;
      const double rate = p_.framework.flash_forward * p_.device.peak_bf16 /
                          (1 + kFlashRampTokens / (seq * p_.work.packed));
      core_f_ = flops / rate + p_.framework.kernel_gap_s;
      core_b_ = kFlashBackwardFlops * flops / (rate * p_.framework.flash_backward) +
                2 * p_.framework.kernel_gap_s;
      return;
    }
    // Two full matmuls; a head width that is no multiple of 8 leaves the tensor cores.
    const bool aligned = std::fmod(a.head_dim, 8.0) == 0;
    const double rate = p_.framework.unfused_fraction * p_.device.peak_bf16 /
                        (aligned ? 1 : p_.device.peak_bf16 / p_.device.peak_fp32);
    const double flops = 2 * tokens_ * seq * heads * dims;
    const double scores = tokens_ * seq * heads * p_.framework.score_traffic;
    core_f_ = flops / rate + kScoreBytesForward * scores / stream_ + 4 * p_.framework.kernel_gap_s;
    core_b_ =
        2 * flops / rate + kScoreBytesBackward * scores / stream_ + 8 * p_.framework.kernel_gap_s;
  }

  void add_mamba(const MambaShape& m) {
    if (m.inner == 0) return;
    add_residual();
    const double h = p_.model.hidden;
    const double inner = m.inner / s_.tp;
    add_linear(2 * inner + 2 * m.groups * m.state / s_.tp + m.num_heads / s_.tp, h);
    add_linear(h, inner);
    // The chunked scan: about four passes over inner x state / 16 and the convolution.
    add_elementwise(p_.framework.mamba_traffic * tokens_ * inner * 40);
    core_f_ += 6 * tokens_ * inner * m.state / (0.15 * p_.device.peak_bf16);
    core_b_ += 2.5 * 6 * tokens_ * inner * m.state / (0.15 * p_.device.peak_bf16);
  }

  void add_ffn(const FfnShape& f) {
    if (f.width + f.num_experts == 0) return;
    add_residual();
    const double h = p_.model.hidden;
    const double gates = p_.model.gated_ffn ? 2 : 1;
    if (f.width > 0) {
      const double width = f.width / s_.tp;
      add_linear(gates * width, h);
      add_linear(h, width);
      add_elementwise(tokens_ * 6 * gates * width);
    }
    if (f.num_experts == 0) return;
    const double in = f.latent > 0 ? f.latent : h;
    if (f.latent > 0) {
      add_linear(f.latent, h);
      add_linear(h, f.latent);
    }
    // Tokens of the expert-parallel group meet this rank's experts; tensor ranks share them.
    const double rows = tokens_ / s_.tp * f.top_k * s_.expert_tp;
    const double width = f.expert_width / s_.expert_tp;
    const double local = f.num_experts / s_.ep;
    const double slow = 1 / p_.framework.moe_gemm;
    add_linear(gates * width, in, rows / local, local, slow);
    add_linear(in, width, rows / local, local, slow);
    add_elementwise(rows * 6 * gates * width);
    add_elementwise(p_.framework.moe_traffic * rows * 8 * in + tokens_ * 8 * f.num_experts);
  }

  [[nodiscard]] BlockCost combine(const BlockShape& block) const {
    BlockCost c;
    c.forward_s = linear_f_ + core_f_ + elementwise_f_ + cast_f_;
    c.weight_grad_s = wgrad_;
    c.backward_s = dgrad_ + wgrad_ + core_b_ + kBackwardElementwise * elementwise_f_ + cast_b_;
    switch (p_.work.recompute) {
      case RecomputeKind::kNone:
        break;
      case RecomputeKind::kCore:
        c.recompute_s = core_f_;
        break;
      case RecomputeKind::kOps:
        c.recompute_s = 0.5 * linear_f_ + elementwise_f_;
        break;
      case RecomputeKind::kHalfLayers:
        c.recompute_s = 0.5 * c.forward_s;
        break;
      case RecomputeKind::kFull:
        c.recompute_s = c.forward_s;
        break;
    }
    const BlockCommunication comm = block_communication(p_,
                                                        s_,
                                                        block,
                                                        {.tokens = tokens_,
                                                         .tp_collectives = collectives_,
                                                         .matmul_forward_s = linear_f_,
                                                         .forward_repeats = repeats_of_forward()});
    c.tp_forward_s = comm.tp_forward_s;
    c.tp_s = comm.tp_s;
    c.cp_s = comm.cp_s;
    c.ep_s = comm.ep_s;
    add_host(block, c);
    c.dense_params = dense_parameters_of_rank(p_.model, block, s_.tp);
    c.expert_params = expert_parameters(p_.model, block) / (s_.ep * s_.expert_tp);
    return c;
  }

  [[nodiscard]] double repeats_of_forward() const {
    switch (p_.work.recompute) {
      case RecomputeKind::kFull:
        return 1;
      case RecomputeKind::kHalfLayers:
        return 0.5;
      default:
        return 0;
    }
  }

  void add_host(const BlockShape& block, BlockCost& c) const {
    const FrameworkProfile& f = p_.framework;
    double forward = f.host_layer_s + (block.ffn.num_experts > 0 ? f.host_moe_s : 0);
    if (s_.tp > 1) {
      const double peers = std::min(s_.tp, 8.0) - 1;
      forward += collectives_ * f.host_collective_s * (1 + 0.18 * peers * peers);
    }
    const double host = forward * (1 + f.host_backward + repeats_of_forward());
    const double device = c.device_s();
    if (host <= 0 || device <= 0) return;
    const double high = std::max(device, host);
    const double low = std::min(device, host);
    c.host_s = high * std::pow(1 + std::pow(low / high, f.host_norm), 1 / f.host_norm) - device;
  }

  const StepProblem& p_;
  const ShardLayout& s_;
  double tokens_, stream_;
  GemmRate linear_, head_;
  double linear_f_ = 0, dgrad_ = 0, wgrad_ = 0, elementwise_f_ = 0, core_f_ = 0, core_b_ = 0;
  double cast_f_ = 0, cast_b_ = 0;
  double collectives_ = 0;  // tensor-parallel, of one forward
};

void add_scaled(BlockCost& sum, const BlockCost& x, double w) {
  sum.forward_s += w * x.forward_s;
  sum.backward_s += w * x.backward_s;
  sum.weight_grad_s += w * x.weight_grad_s;
  sum.recompute_s += w * x.recompute_s;
  sum.tp_forward_s += w * x.tp_forward_s;
  sum.tp_s += w * x.tp_s;
  sum.cp_s += w * x.cp_s;
  sum.ep_s += w * x.ep_s;
  sum.host_s += w * x.host_s;
  sum.dense_params += w * x.dense_params;
  sum.expert_params += w * x.expert_params;
}

}  // namespace

ShardCost price_shard(const StepProblem& problem, const ShardLayout& shard) {
  BlockPricer pricer(problem, shard);
  const ModelShape& model = problem.model;
  ShardCost cost{.layers = model.num_layers()};
  BlockCost last;
  for (int i = 0; i < model.num_kinds; ++i) {
    const BlockShape& block = model.kinds[static_cast<size_t>(i)];
    last = pricer.price(block);
    add_scaled(cost.block, last, block.count / cost.layers);
  }
  cost.head_s = pricer.head_time();
  cost.embed_s = pricer.embed_time();
  cost.mtp_s = model.mtp_layers * (last.total_s() + cost.head_s);
  cost.head_params = model.hidden * model.vocab / shard.tp;
  cost.saved_bytes = mean_saved_bytes(problem, shard);
  cost.final_norm_params = final_norm_parameters(model);
  cost.embed_params = embedding_parameters_of_rank(model, shard.tp);
  cost.hop_bytes = 2 * pricer.tokens() * model.hidden / shard.tp;
  return cost;
}

}  // namespace meshwright
