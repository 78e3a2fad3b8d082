// SPDX-License-Identifier: Apache-2.0
// Degrees, and what the model allows of them.
#include "sim/plan/rules.h"

namespace meshwright {

void check_positive(Rules& r) {
  const Layout& l = r.layout;
  const std::pair<const char*, int64_t> degrees[] = {{"dp_replicate", l.dp_replicate},
                                                     {"dp_shard", l.dp_shard},
                                                     {"tp", l.tp},
                                                     {"cp", l.cp},
                                                     {"pp", l.pp},
                                                     {"ep", l.ep},
                                                     {"virtual_stages", l.virtual_stages},
                                                     {"micro_batch", l.micro_batch}};
  for (const auto& [name, degree] : degrees)
    if (degree < 1) r.broken(name, degree, "must be at least 1");
}

void check_axes(Rules& r) {
  const Layout& l = r.layout;
  const int64_t devices = r.problem.cluster.num_devices;
  // In double: the product of five degrees of a person's making can exceed int64.
  const double rest = 1.0 * l.dp_shard * l.cp * l.tp * l.pp;
  const double world = rest * l.dp_replicate;
  if (world != static_cast<double>(devices)) {
    const bool divides =
        rest <= static_cast<double>(devices) && devices % static_cast<int64_t>(rest) == 0;
    r.broken("dp_replicate",
             l.dp_replicate,
             fmt::format("pp({}) * dp_replicate({}) * dp_shard({}) * cp({}) * tp({}) = {:.0f} must "
                         "be the {} devices of the cluster",
                         l.pp,
                         l.dp_replicate,
                         l.dp_shard,
                         l.cp,
                         l.tp,
                         world,
                         devices),
             divides
                 ? fmt::format("use dp_replicate={}", devices / static_cast<int64_t>(rest))
                 : fmt::format("lower the other degrees until their product ({:.0f}) divides {}",
                               rest,
                               devices));
  }
}

void check_tensor_parallel(Rules& r) {
  const Layout& l = r.layout;
  const ModelSpec& m = r.problem.model;
  const auto heads = [&](int64_t tp) {
    return m.num_heads % tp == 0 && (m.num_kv_heads % tp == 0 || tp % m.num_kv_heads == 0);
  };
  if (m.num_heads % l.tp != 0)
    r.broken("tp",
             l.tp,
             fmt::format("must divide the {} attention heads", m.num_heads),
             nearest_legal("tp", l.tp, m.num_heads, heads));
  else if (!(m.num_kv_heads % l.tp == 0 || l.tp % m.num_kv_heads == 0))
    r.broken(
        "tp",
        l.tp,
        fmt::format("must divide the {} key/value heads or be a multiple of them", m.num_kv_heads),
        nearest_legal("tp", l.tp, m.num_heads, heads));
  if (l.sp && l.tp == 1) r.broken("sp", l.sp, "sequence parallelism needs tp > 1", "use sp=off");
  if (l.sp) {
    const int64_t tokens = l.micro_batch * r.problem.workload.seq_len / l.cp;
    if (tokens % l.tp != 0)
      r.broken("sp",
               l.sp,
               fmt::format("the {} tokens of a micro-batch must divide by tp ({})", tokens, l.tp),
               fmt::format("use sp=off, or a sequence length of {}",
                           (r.problem.workload.seq_len / l.tp + 1) * l.tp));
  }
}

void check_context_parallel(Rules& r) {
  const Layout& l = r.layout;
  const ModelSpec& m = r.problem.model;
  if (l.cp == 1) return;
  const int64_t seq = r.problem.workload.seq_len;
  if (!l.flash_attention)
    r.broken("flash_attention", "off", "context parallelism needs fused attention", "use cp=1");
  if (l.cp_kind == CpKind::kRing && seq % (2 * int64_t{l.cp}) != 0)
    r.broken("cp",
             l.cp,
             fmt::format("ring attention deals 2 cp pieces of equal length: {} must divide the "
                         "sequence of {} tokens",
                         2 * int64_t{l.cp},
                         seq),
             nearest_legal("cp", l.cp, seq, [&](int64_t c) { return seq % (2 * c) == 0; }));
  if (l.cp_kind == CpKind::kUlysses) {
    const int64_t heads = std::max<int64_t>(1, m.num_heads / l.tp);
    const int64_t kv_heads = std::max<int64_t>(1, m.num_kv_heads / l.tp);
    const auto legal = [&](int64_t c) {
      return heads % c == 0 && seq % c == 0 && (m.mla || kv_heads % c == 0 || c % kv_heads == 0);
    };
    if (!legal(l.cp))
      r.broken("cp",
               l.cp,
               fmt::format("ulysses deals the {} heads of a tensor-parallel rank ({} of keys and "
                           "values) and the {} tokens of a sequence",
                           heads,
                           kv_heads,
                           seq),
               nearest_legal("cp", l.cp, heads, legal) + ", or cp_kind=ring");
  }
}

void check_experts(Rules& r) {
  const Layout& l = r.layout;
  const std::optional<MoeSpec>& moe = r.problem.model.moe;
  if (!moe) {
    if (l.ep != 1) r.broken("ep", l.ep, "this model has no experts to spread", "use ep=1");
    return;
  }
  if (l.expert_tp && moe->d_ff_expert < l.tp)
    r.broken("tp",
             l.tp,
             fmt::format("exceeds the experts' feed-forward width ({})", moe->d_ff_expert),
             fmt::format("use tp={}", moe->d_ff_expert));
  if (!l.expert_tp && l.tp > 1 && !l.sp)
    r.broken("expert_tp",
             "off",
             "whole experts on tensor-parallel ranks need sequence parallelism, so that each rank "
             "has tokens of its own",
             "use sp=on, or expert_tp=on");
  // Experts run over the ranks with different tokens, those that share ZeRO's shards first.
  const int64_t spread = l.expert_tp ? 1 : l.tp;
  const int64_t inner = l.shards() * spread;
  const int64_t all = l.replicas() * spread;
  const auto legal = [&](int64_t e) {
    return moe->num_experts % e == 0 && all % e == 0 && e % spread == 0 &&
           (inner % e == 0 || e % inner == 0);
  };
  if (!legal(l.ep))
    r.broken("ep",
             l.ep,
             fmt::format("must divide the {} experts and the {} ranks with different tokens{}",
                         moe->num_experts,
                         all,
                         spread > 1 ? fmt::format(", in multiples of tp ({})", l.tp) : ""),
             nearest_legal("ep", l.ep, std::min(all, moe->num_experts), legal));
}

void check_sequence(Rules& r) {
  const int64_t seq = r.problem.workload.seq_len;
  const int64_t longest = r.problem.model.max_seq_len;
  if (seq > longest)
    r.broken("seq_len",
             seq,
             fmt::format("exceeds the model's max_position_embeddings ({})", longest),
             fmt::format("use --seq-len {}", longest));
}

}  // namespace meshwright
