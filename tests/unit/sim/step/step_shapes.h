// Models and layouts that the tests of sim/step share.
#pragma once

#include "sim/step/step_time.h"

namespace meshwright::testing {

/// A GPT of Megatron-LM: GELU, biases, dropout, learned positions, tied embeddings.
inline ModelShape gpt(double layers, double hidden, double heads, double vocab = 51200) {
  ModelShape m{.hidden = hidden,
               .vocab = vocab,
               .position_rows = 2048,
               .tied_embeddings = true,
               .bias = true,
               .dropout = 0.1};
  m.add({.count = layers,
         .attention = {.num_heads = heads,
                       .num_kv_heads = heads,
                       .head_dim = hidden / heads,
                       .v_head_dim = hidden / heads},
         .ffn = {.width = 4 * hidden}});
  return m;
}

inline StepProblem gpt_problem(double layers, double hidden, double heads) {
  StepProblem p;
  p.model = gpt(layers, hidden, heads);
  p.device = {.name = "a100-80g",
              .peak_bf16 = 312e12,
              .peak_fp8 = 312e12,
              .peak_fp4 = 312e12,
              .peak_fp32 = 19.5e12,
              .memory_bandwidth = 2.039e12,
              .memory_bytes = 85e9,
              .num_sms = 108,
              .nvlink_bandwidth = 300e9,
              .nvlink_domain = 8,
              .gemm_fraction = 0.8};
  p.work = {.seq = 2048, .global_batch = 64, .attention = AttentionKernel::kUnfused};
  return p;
}

inline StepLayout layout(double tp, double pp, double dp, double micro_batch, double m) {
  StepLayout l;
  l.shard.tp = tp;
  l.shard.micro_batch = micro_batch;
  l.pp = pp;
  l.dp = dp;
  l.micro_batches = m;
  return l;
}

/// Its layers split as Megatron does.
inline StepTerms step_of(const StepProblem& p, StepLayout l) {
  split_layers(p.model.num_layers(), l);
  return evaluate_step(p, price_shard(p, l.shard), l);
}

}  // namespace meshwright::testing
