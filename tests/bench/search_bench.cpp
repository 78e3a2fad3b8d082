// SPDX-License-Identifier: Apache-2.0
// Speed of the closed-form search on one core, over the spaces that Calculon's
// optimal-execution walks: GPT-3 175B on A100 80 GB, 64 devices (88,484 layouts) and 512 with
// overlap and offload (6,582,816). Every layout is evaluated in full, whether or not it fits.
//
// usage: search_bench [threads, default 1]
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

#include "sim/search/plan_space.h"
#include "sim/search/search.h"
#include "sim/spec/cluster_spec.h"
#include "sim/step/plan_problem.h"
#include "sim/step/published_models.h"

namespace meshwright {
namespace {

StepProblem gpt3_problem(int devices) {
  const MachineFacts machine{.cores = 1, .memory = Bytes{8e9}, .cpu_model = "", .id = ""};
  const ClusterSpec cluster = load_cluster(std::to_string(devices) + "xa100-80g", machine).value();
  const StepStack stack = *step_stack(cluster);
  StepProblem p{.model = *published_model("gpt3-175b"),
                .device = stack.device,
                .links = stack.links,
                .framework = stack.framework,
                .work = {}};
  p.work.seq = 2048;
  p.work.global_batch = devices;
  p.work.attention = AttentionKernel::kUnfused;
  return p;
}

void run(const char* name, const StepProblem& problem, const SearchSpace& space, int threads) {
  const SearchOptions options{.capacity_bytes = 80e9, .threads = threads};
  const auto start = std::chrono::steady_clock::now();
  const SearchResult r = search(problem, space, options);
  const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("{}: {} layouts in {:.2f} s = {:.2f} M/s; {} fit, {} too big, {} wider than NVLink\n",
             name,
             r.evaluated,
             s,
             static_cast<double>(r.evaluated) / s / 1e6,
             r.fits,
             r.too_big,
             r.unplaceable);
  for (const Found& f : r.best)
    fmt::print("  {:.3f} s {:.1f} GB  {}\n",
               f.value.time_s,
               f.value.memory_bytes / 1e9,
               describe(f.candidate));
  fmt::print("  {} on the Pareto front of time and memory\n", r.pareto.size());
}

/// All that a model can be laid out as on a cluster.
void run_plan(const char* model, const char* cluster, int64_t seq, int64_t batch, int threads) {
  const MachineFacts machine{.cores = 1, .memory = Bytes{8e9}, .cpu_model = "", .id = ""};
  Problem problem{.model = load_model(model).value(),
                  .cluster = load_cluster(cluster, machine).value(),
                  .workload = {}};
  problem.workload.seq_len = seq;
  problem.workload.global_batch = batch;
  const PlanSearch plan = *plan_search(problem);
  run(fmt::format("{} on {}", model, cluster).c_str(), plan.problem, plan.space, threads);
}

}  // namespace
}  // namespace meshwright

int main(int argc, char** argv) {
  using namespace meshwright;
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const StepProblem small = gpt3_problem(64);
  run("plain space, 64 devices", small, calculon_space(small.model, 64, 64), threads);
  const StepProblem large = gpt3_problem(512);
  run("with offload and overlap, 512 devices",
      large,
      calculon_offload_space(large.model, 512, 512),
      threads);
  run_plan("llama-3-70b", "64xa100-80g", 4096, 1024, threads);
  run_plan("deepseek-v3", "2048xh100", 4096, 15360, threads);
}
