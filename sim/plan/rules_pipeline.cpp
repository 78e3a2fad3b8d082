// SPDX-License-Identifier: Apache-2.0
// Stages, schedule and batch.
#include <numeric>

#include "sim/plan/rules.h"

namespace meshwright {
namespace {

/// The balanced split, and the nearest virtual_stages whose parts are equal.
std::string legal_splits(const Layout& l, int64_t layers, int64_t parts) {
  std::string text = fmt::format("use --stages {}",
                                 fmt::join(balanced_stages(layers, static_cast<int>(parts)), ","));
  if (l.virtual_stages == 1 || layers % parts == 0) return text;
  const std::string equal =
      nearest_legal("virtual_stages", l.virtual_stages, layers / l.pp, [&](int64_t v) {
        return v > 1 && layers % (l.pp * v) == 0;
      });
  if (!equal.empty()) text += fmt::format(", or for equal parts {}", equal.substr(4));
  return text;
}

void check_micro_batches(Rules& r) {
  const Layout& l = r.layout;
  const int64_t per_rank = r.problem.workload.global_batch / l.dp();
  if (r.problem.workload.global_batch % l.dp() != 0 || per_rank % l.micro_batch != 0) return;
  const int64_t m = per_rank / l.micro_batch;
  const int64_t least = min_micro_batches(l.schedule, l.pp);
  const bool even = l.schedule == ScheduleKind::kDualPipe;
  const auto legal = [&](int64_t n) { return n >= least && !(even && n % 2 != 0); };
  if (legal(m)) return;
  std::string remedy = nearest_legal("micro_batch", l.micro_batch, l.micro_batch, [&](int64_t b) {
    return per_rank % b == 0 && legal(per_rank / b);
  });
  const int64_t batch = std::max(least, even ? m + m % 2 : m) * l.micro_batch * l.dp();
  remedy += fmt::format("{}--global-batch {}, or schedule=1f1b",
                        remedy.empty() ? "use " : ", ",
                        batch * r.problem.workload.seq_len);
  r.broken("micro_batch",
           l.micro_batch,
           fmt::format("makes {} micro-batches, but schedule {} on pp={} needs {}{}",
                       m,
                       to_string(l.schedule),
                       l.pp,
                       even ? "an even number of at least " : "at least ",
                       least),
           remedy);
}

}  // namespace

void check_stages(Rules& r) {
  const Layout& l = r.layout;
  const int64_t layers = r.problem.model.num_layers;
  const int64_t parts = int64_t{l.pp} * l.virtual_stages;
  if (!(l.pp <= layers))
    r.broken("pp",
             l.pp,
             fmt::format("exceeds the {} layers of the model", layers),
             fmt::format("use pp={}", layers));
  else if (!(parts <= layers))
    r.broken("virtual_stages",
             l.virtual_stages,
             fmt::format("pp({}) * virtual_stages({}) = {} parts exceed the {} layers of the model",
                         l.pp,
                         l.virtual_stages,
                         parts,
                         layers),
             fmt::format("use virtual_stages={}", layers / l.pp));
  if (l.stages.empty() || parts > layers) return;
  const int64_t sum = std::accumulate(l.stages.begin(), l.stages.end(), int64_t{0});
  const bool positive = std::all_of(l.stages.begin(), l.stages.end(), [](int s) { return s >= 1; });
  const std::string given = fmt::format("{}", fmt::join(l.stages, ","));
  const std::string legal = legal_splits(l, layers, parts);
  if (!(static_cast<int64_t>(l.stages.size()) == parts))
    r.broken(
        "stages",
        given,
        l.virtual_stages == 1
            ? fmt::format(
                  "must have one entry per stage: {} given, pp is {}", l.stages.size(), l.pp)
            : fmt::format("must have one entry per part: {} given, pp({}) * virtual_stages({}) "
                          "is {}",
                          l.stages.size(),
                          l.pp,
                          l.virtual_stages,
                          parts),
        legal);
  if (!(sum == layers))
    r.broken("stages",
             given,
             fmt::format("must cover the {} layers exactly once, but sum to {}", layers, sum),
             legal);
  if (!(positive)) r.broken("stages", given, "every stage needs at least one layer", legal);
}

void check_schedule(Rules& r) {
  const Layout& l = r.layout;
  const std::string_view name = to_string(l.schedule);
  const bool parts = l.schedule == ScheduleKind::kInterleaved || l.schedule == ScheduleKind::kZbV;
  const bool plain = l.schedule == ScheduleKind::kGpipe || l.schedule == ScheduleKind::k1f1b;
  if (!plain && l.pp == 1) {
    r.broken("schedule", name, "needs pp > 1", "use schedule=1f1b, or pp=2");
    return;
  }
  if (!parts && l.virtual_stages != 1)
    r.broken("virtual_stages",
             l.virtual_stages,
             fmt::format("schedule {} has one part of the model per rank", name),
             "use schedule=interleaved, or virtual_stages=1");
  if (l.schedule == ScheduleKind::kInterleaved && l.virtual_stages < 2)
    r.broken("virtual_stages",
             l.virtual_stages,
             "schedule interleaved needs several parts of the model per rank",
             "use virtual_stages=2, or schedule=1f1b");
  if (l.schedule == ScheduleKind::kZbV && l.virtual_stages != 2)
    r.broken("virtual_stages",
             l.virtual_stages,
             "schedule zb_v has two parts of the model per rank",
             "use virtual_stages=2");
  if (l.schedule == ScheduleKind::kDualPipe && l.pp % 2 != 0)
    r.broken("pp",
             l.pp,
             "schedule dualpipe feeds the pipeline from both ends and needs an even pp",
             fmt::format("use pp={} or pp={}", l.pp - 1, l.pp + 1));
  check_micro_batches(r);
}

void check_batch(Rules& r) {
  const Layout& l = r.layout;
  const int64_t batch = r.problem.workload.global_batch;
  if (batch % l.dp() != 0) {
    r.broken("dp_replicate",
             l.dp(),
             fmt::format("data parallelism must divide the global batch of {} sequences", batch),
             nearest_legal("dp",
                           l.dp(),
                           std::min<int64_t>(batch, r.problem.cluster.num_devices),
                           [&](int64_t d) { return batch % d == 0; }));
    return;
  }
  const int64_t own = batch / l.dp();
  if (own % l.micro_batch != 0)
    r.broken(
        "micro_batch",
        l.micro_batch,
        fmt::format("must divide the {} sequences of each data-parallel rank", own),
        nearest_legal("micro_batch", l.micro_batch, own, [&](int64_t b) { return own % b == 0; }));
}

}  // namespace meshwright
