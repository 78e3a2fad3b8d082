// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/collective_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/cost/collectives/domain_time.h"

namespace meshwright {
namespace {

std::string log_row(int n, const std::string& op, double bytes, double time_us) {
  std::ostringstream out;
  out.precision(12);
  out << "X,NVLink4," << n << ',' << op << ',' << bytes << ',' << time_us << ",me,nccl-tests log\n";
  return out.str();
}

/// nccl-tests rows as `link` would give them, with a deterministic ripple of +-`noise`.
std::string table_of(const LinkConstants& link, const std::vector<int>& ranks, double noise) {
  std::string text = "gpu,interconnect,ngpus,op,bytes,time_us,source,notes\n";
  int i = 0;
  for (const int n : ranks) {
    for (const char* op : {"all_reduce", "all_gather", "reduce_scatter", "alltoall"}) {
      const CommOp kind = std::string(op) == "all_reduce"       ? CommOp::kAllReduce
                          : std::string(op) == "all_gather"     ? CommOp::kAllGather
                          : std::string(op) == "reduce_scatter" ? CommOp::kReduceScatter
                                                                : CommOp::kAllToAll;
      for (double bytes = 512; bytes <= 536870912; bytes *= 2) {
        const double t = domain_time_us(collective_constants().nccl, link, kind, bytes, {n}) *
                         (1 + noise * std::sin(1.7 * ++i));
        text += log_row(n, op, bytes, t);
      }
    }
  }
  return text;
}

LinkConstants another_link() {
  LinkConstants c = *collective_constants().link("nvlink4");
  c.base_us = 7;
  c.simple.rate_GBps = 300;
  c.local_copy = 0.4;
  c.ll128_max_chunk_bytes = 1048576;
  c.all_to_all.simple_rate_GBps = 250;
  return c;
}

LinkConstants fitted(const std::string& table, std::string* text = nullptr) {
  const std::string json = fit_collectives(CsvTable::parse(table, "test").value()).value();
  if (text != nullptr) *text = json;
  return *parse_collective_constants(json, "fit").value().link("nvlink4");
}

TEST(CollectiveFit, RecoversTheConstantsThatMadeTheTable) {
  const LinkConstants truth = another_link();
  std::string text;
  const LinkConstants c = fitted(table_of(truth, {2, 4, 8}, 0.02), &text);
  EXPECT_NEAR(c.base_us, truth.base_us, 0.05 * truth.base_us);
  EXPECT_NEAR(c.simple.rate_GBps, truth.simple.rate_GBps, 0.02 * truth.simple.rate_GBps);
  EXPECT_NEAR(c.local_copy, truth.local_copy, 0.1);
  EXPECT_NEAR(c.ll128.hop_us, truth.ll128.hop_us, 0.1 * truth.ll128.hop_us);
  EXPECT_NEAR(c.all_to_all.simple_rate_GBps, 250, 10);
  EXPECT_NEAR(c.nvls.rate_GBps, truth.nvls.rate_GBps, 0.05 * truth.nvls.rate_GBps);
  EXPECT_EQ(c.ll128_max_chunk_bytes, truth.ll128_max_chunk_bytes);
  // The held-out error is the ripple's.
  const auto json = nlohmann::json::parse(text);
  for (const auto& link : json["links"]) {
    if (link["generation"] != "nvlink4") continue;
    EXPECT_EQ(link["held_out"]["groups"], 12);
    EXPECT_LT(link["held_out"]["median"], 0.025);
    EXPECT_GT(link["measured_over_predicted_80"]["low"], 0.95);
  }
}

TEST(CollectiveFit, AFewRowsOfOnesOwnMoveOnlyWhatTheyTouch) {
  const LinkConstants built_in = *collective_constants().link("nvlink4");
  std::string table = "gpu,interconnect,ngpus,op,bytes,time_us,source,notes\n";
  for (double bytes = 16777216; bytes <= 536870912; bytes *= 2) {
    LinkConstants slower = built_in;
    slower.simple.rate_GBps = 0.8 * built_in.simple.rate_GBps;
    const double t =
        domain_time_us(collective_constants().nccl, slower, CommOp::kAllGather, bytes, {8});
    table += log_row(8, "all_gather", bytes, t);
  }
  const LinkConstants c = fitted(table);
  EXPECT_LT(c.simple.rate_GBps, 0.9 * built_in.simple.rate_GBps);
  EXPECT_NEAR(c.all_to_all.base_us, built_in.all_to_all.base_us, 1e-9);
  EXPECT_NEAR(c.ll.hop_us, built_in.ll.hop_us, 1e-9);
}

TEST(CollectiveFit, OtherGenerationsStayAsTheyAre) {
  std::string text;
  (void)fitted(table_of(another_link(), {2, 4}, 0), &text);
  const CollectiveConstants c = parse_collective_constants(text, "fit").value();
  EXPECT_EQ(c.link("nvlink5")->simple.rate_GBps,
            collective_constants().link("nvlink5")->simple.rate_GBps);
  EXPECT_EQ(c.networks.size(), collective_constants().networks.size());
}

TEST(CollectiveFit, ATableWithoutAUsableRowIsRefused) {
  const auto table =
      CsvTable::parse("gpu,interconnect,ngpus,op,bytes,time_us\nX,NVLink2,2,all_reduce,8,1\n", "t");
  EXPECT_FALSE(fit_collectives(table.value()).has_value());
}

}  // namespace
}  // namespace meshwright
