// SPDX-License-Identifier: Apache-2.0
// The rules of a legal layout, each with its nearest legal choice.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/plan/plan.h"

namespace meshwright {
namespace {

/// The legal values around `wanted`, as "tp=2 or tp=4".
template <class Legal>
std::string nearest(const char* name, int64_t wanted, int64_t max, Legal legal) {
  std::string text;
  for (int64_t x = std::min(wanted, max); x >= 1; --x) {
    if (legal(x)) {
      text = fmt::format("use {}={}", name, x);
      break;
    }
  }
  for (int64_t x = wanted + 1; x <= max; ++x) {
    if (legal(x)) {
      text += fmt::format("{}{}={}", text.empty() ? "use " : " or ", name, x);
      break;
    }
  }
  return text;
}

class Rules {
 public:
  Rules(const Problem& p, const Layout& l) : p_(p), l_(l) {}

  std::vector<Error> check() {
    positive();
    if (!found_.empty()) return std::move(found_);  // the rules below divide by the degrees
    axes();
    model();
    stages();
    batch();
    schedule();
    engine();
    return std::move(found_);
  }

 private:
  template <class T>
  void broken(const char* field, const T& value, std::string rule, std::string remedy = "") {
    const bool of_workload = std::string_view(field) == "seq_len";
    found_.push_back(
        Error{.where = fmt::format("/{}/{}", of_workload ? "workload" : "layout", field),
              .field = field,
              .value = fmt::format("{}", value),
              .rule = std::move(rule),
              .remedy = std::move(remedy)});
  }

  void positive() {
    const std::pair<const char*, int64_t> degrees[] = {{"dp_replicate", l_.dp_replicate},
                                                       {"dp_shard", l_.dp_shard},
                                                       {"tp", l_.tp},
                                                       {"cp", l_.cp},
                                                       {"pp", l_.pp},
                                                       {"ep", l_.ep},
                                                       {"virtual_stages", l_.virtual_stages},
                                                       {"micro_batch", l_.micro_batch}};
    for (const auto& [name, degree] : degrees)
      if (!(degree >= 1)) broken(name, degree, "must be at least 1");
  }

  void axes() {
    const int64_t devices = p_.cluster.num_devices;
    // In double: the product of five degrees of a person's making can exceed int64.
    const double rest = 1.0 * l_.dp_shard * l_.cp * l_.tp * l_.pp;
    const double world = rest * l_.dp_replicate;
    if (world != static_cast<double>(devices)) {
      const bool divides =
          rest <= static_cast<double>(devices) && devices % static_cast<int64_t>(rest) == 0;
      broken("dp_replicate",
             l_.dp_replicate,
             fmt::format("pp({}) * dp_replicate({}) * dp_shard({}) * cp({}) * tp({}) = {:.0f} must "
                         "be the {} devices of the cluster",
                         l_.pp,
                         l_.dp_replicate,
                         l_.dp_shard,
                         l_.cp,
                         l_.tp,
                         world,
                         devices),
             divides
                 ? fmt::format("use dp_replicate={}", devices / static_cast<int64_t>(rest))
                 : fmt::format("lower the other degrees until their product ({:.0f}) divides {}",
                               rest,
                               devices));
    }
    if (!(l_.cp == 1)) broken("cp", l_.cp, "context parallelism is not supported", "use cp=1");
    if (!(l_.ep == 1))
      broken("ep",
             l_.ep,
             p_.model.moe ? "expert parallelism is not supported"
                          : "this model has no experts to spread",
             "use ep=1");
    if (!(l_.zero_stage == 0 || l_.zero_stage == 1))
      broken("zero_stage", l_.zero_stage, "must be 0 or 1", "use zero_stage=0 or zero_stage=1");
    if (!(l_.zero_stage != 0 || l_.dp_shard == 1))
      broken("dp_shard",
             l_.dp_shard,
             "must be 1 with zero_stage=0, which shards nothing",
             fmt::format("use dp_replicate={} and dp_shard=1, or zero_stage=1", dp()));
    if (!(l_.zero_stage == 0 || l_.dp_shard > 1))
      broken("zero_stage", l_.zero_stage, "needs dp_shard > 1 to shard over", "use zero_stage=0");
  }

  void model() {
    const ModelSpec& m = p_.model;
    const auto heads = [&](int64_t tp) {
      return m.num_heads % tp == 0 && (m.num_kv_heads % tp == 0 || tp % m.num_kv_heads == 0);
    };
    if (!(m.num_heads % l_.tp == 0))
      broken("tp",
             l_.tp,
             fmt::format("must divide the {} attention heads", m.num_heads),
             nearest("tp", l_.tp, m.num_heads, heads));
    else if (!(m.num_kv_heads % l_.tp == 0 || l_.tp % m.num_kv_heads == 0))
      broken("tp",
             l_.tp,
             fmt::format("must divide the {} key/value heads or be a multiple of them",
                         m.num_kv_heads),
             nearest("tp", l_.tp, m.num_heads, heads));
    if (!(!l_.sp || l_.tp > 1))
      broken("sp", l_.sp, "sequence parallelism needs tp > 1", "use sp=off");
    if (l_.sp) {
      const int64_t tokens = l_.micro_batch * p_.workload.seq_len;
      if (!(tokens % l_.tp == 0))
        broken("sp",
               l_.sp,
               fmt::format("the {} tokens of a micro-batch must divide by tp ({})", tokens, l_.tp),
               fmt::format("use sp=off, or a sequence length of {}",
                           (p_.workload.seq_len / l_.tp + 1) * l_.tp));
    }
    if (l_.recompute == Recompute::kSelective && l_.flash_attention)
      broken("recompute",
             to_string(l_.recompute),
             "selective repeats the attention scores, which flash attention never keeps",
             "use recompute=none, or flash_attention=off");
    if (m.moe && m.moe->d_ff_expert < l_.tp)
      broken("tp",
             l_.tp,
             fmt::format("exceeds the experts' feed-forward width ({})", m.moe->d_ff_expert),
             fmt::format("use tp={}", m.moe->d_ff_expert));
    if (!(p_.workload.seq_len <= m.max_seq_len))
      broken("seq_len",
             p_.workload.seq_len,
             fmt::format("exceeds the model's max_position_embeddings ({})", m.max_seq_len),
             fmt::format("use --seq-len {}", m.max_seq_len));
    if (m.sliding_window) {
      if (!(p_.workload.seq_len <= *m.sliding_window))
        broken("seq_len",
               p_.workload.seq_len,
               fmt::format("exceeds the model's sliding window ({}), which is not supported",
                           *m.sliding_window),
               fmt::format("use --seq-len {}", *m.sliding_window));
    }
  }

  void stages() {
    const int64_t layers = p_.model.num_layers;
    const int64_t parts = int64_t{l_.pp} * l_.virtual_stages;
    if (!(l_.pp <= layers))
      broken("pp",
             l_.pp,
             fmt::format("exceeds the {} layers of the model", layers),
             fmt::format("use pp={}", layers));
    else if (!(parts <= layers))
      broken("virtual_stages",
             l_.virtual_stages,
             fmt::format("pp({}) * virtual_stages({}) = {} parts exceed the {} layers of the model",
                         l_.pp,
                         l_.virtual_stages,
                         parts,
                         layers),
             fmt::format("use virtual_stages={}", layers / l_.pp));
    if (l_.stages.empty() || parts > layers) return;
    const int64_t sum = std::accumulate(l_.stages.begin(), l_.stages.end(), int64_t{0});
    const bool positive =
        std::all_of(l_.stages.begin(), l_.stages.end(), [](int s) { return s >= 1; });
    const std::string given = fmt::format("{}", fmt::join(l_.stages, ","));
    const std::string legal = legal_splits(layers, parts);
    if (!(static_cast<int64_t>(l_.stages.size()) == parts))
      broken(
          "stages",
          given,
          l_.virtual_stages == 1
              ? fmt::format(
                    "must have one entry per stage: {} given, pp is {}", l_.stages.size(), l_.pp)
              : fmt::format("must have one entry per part: {} given, pp({}) * virtual_stages({}) "
                            "is {}",
                            l_.stages.size(),
                            l_.pp,
                            l_.virtual_stages,
                            parts),
          legal);
    if (!(sum == layers))
      broken("stages",
             given,
             fmt::format("must cover the {} layers exactly once, but sum to {}", layers, sum),
             legal);
    if (!(positive)) broken("stages", given, "every stage needs at least one layer", legal);
  }

  /// The balanced split, and the nearest virtual_stages whose parts are equal.
  [[nodiscard]] std::string legal_splits(int64_t layers, int64_t parts) const {
    std::string text = fmt::format(
        "use --stages {}", fmt::join(balanced_stages(layers, static_cast<int>(parts)), ","));
    if (l_.virtual_stages == 1 || layers % parts == 0) return text;
    const std::string equal =
        nearest("virtual_stages", l_.virtual_stages, layers / l_.pp, [&](int64_t v) {
          return v > 1 && layers % (l_.pp * v) == 0;
        });
    if (!equal.empty()) text += fmt::format(", or for equal parts {}", equal.substr(4));
    return text;
  }

  void schedule() {
    const std::string_view name = to_string(l_.schedule);
    const bool parts =
        l_.schedule == ScheduleKind::kInterleaved || l_.schedule == ScheduleKind::kZbV;
    const bool plain = l_.schedule == ScheduleKind::kGpipe || l_.schedule == ScheduleKind::k1f1b;
    if (!plain && l_.pp == 1) {
      broken("schedule", name, "needs pp > 1", "use schedule=1f1b, or pp=2");
      return;
    }
    if (!parts && l_.virtual_stages != 1)
      broken("virtual_stages",
             l_.virtual_stages,
             fmt::format("schedule {} has one part of the model per rank", name),
             "use schedule=interleaved, or virtual_stages=1");
    if (l_.schedule == ScheduleKind::kInterleaved && l_.virtual_stages < 2)
      broken("virtual_stages",
             l_.virtual_stages,
             "schedule interleaved needs several parts of the model per rank",
             "use virtual_stages=2, or schedule=1f1b");
    if (l_.schedule == ScheduleKind::kZbV && l_.virtual_stages != 2)
      broken("virtual_stages",
             l_.virtual_stages,
             "schedule zb_v has two parts of the model per rank",
             "use virtual_stages=2");
    if (l_.schedule == ScheduleKind::kDualPipe && l_.pp % 2 != 0)
      broken("pp",
             l_.pp,
             "schedule dualpipe feeds the pipeline from both ends and needs an even pp",
             fmt::format("use pp={} or pp={}", l_.pp - 1, l_.pp + 1));
    enough_micro_batches();
  }

  void enough_micro_batches() {
    const int64_t per_rank = p_.workload.global_batch / dp();
    if (p_.workload.global_batch % dp() != 0 || per_rank % l_.micro_batch != 0) return;
    const int64_t m = per_rank / l_.micro_batch;
    const int64_t least = min_micro_batches(l_.schedule, l_.pp);
    const bool even = l_.schedule == ScheduleKind::kDualPipe;
    const auto legal = [&](int64_t n) { return n >= least && !(even && n % 2 != 0); };
    if (legal(m)) return;
    std::string remedy = nearest("micro_batch", l_.micro_batch, l_.micro_batch, [&](int64_t b) {
      return per_rank % b == 0 && legal(per_rank / b);
    });
    const int64_t batch = std::max(least, even ? m + m % 2 : m) * l_.micro_batch * dp();
    remedy += fmt::format("{}--global-batch {}, or schedule=1f1b",
                          remedy.empty() ? "use " : ", ",
                          batch * p_.workload.seq_len);
    broken("micro_batch",
           l_.micro_batch,
           fmt::format("makes {} micro-batches, but schedule {} on pp={} needs {}{}",
                       m,
                       to_string(l_.schedule),
                       l_.pp,
                       even ? "an even number of at least " : "at least ",
                       least),
           remedy);
  }

  void batch() {
    const int64_t batch = p_.workload.global_batch;
    if (batch % dp() != 0) {
      broken("dp_replicate",
             dp(),
             fmt::format("data parallelism must divide the global batch of {} sequences", batch),
             nearest("dp", dp(), std::min<int64_t>(batch, p_.cluster.num_devices), [&](int64_t d) {
               return batch % d == 0;
             }));
      return;
    }
    const int64_t own = batch / dp();
    if (own % l_.micro_batch != 0)
      broken("micro_batch",
             l_.micro_batch,
             fmt::format("must divide the {} sequences of each data-parallel rank", own),
             nearest("micro_batch", l_.micro_batch, own, [&](int64_t b) { return own % b == 0; }));
  }

  void engine() {
    if (!(!p_.cluster.is_local() || l_.precision == Precision::kFp32))
      broken("precision",
             to_string(l_.precision),
             "CPU ranks compute in FP32 (a BF16 matmul is hundreds of times slower there)",
             "use --precision fp32");
  }

  [[nodiscard]] int64_t dp() const { return int64_t{l_.dp_replicate} * l_.dp_shard; }

  const Problem& p_;
  const Layout& l_;
  std::vector<Error> found_;
};

}  // namespace

ValidationOutcome validate(std::shared_ptr<const Problem> problem, const Layout& layout) {
  ValidationOutcome outcome;
  outcome.violations = Rules(*problem, layout).check();
  if (!outcome.violations.empty()) return outcome;
  Layout complete = layout;
  if (complete.stages.empty())
    complete.stages = balanced_stages(problem->model.num_layers, layout.num_parts());
  outcome.plan = Plan(std::move(problem), std::move(complete));
  return outcome;
}

}  // namespace meshwright
