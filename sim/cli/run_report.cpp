// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/run_report.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>

#include "sim/report/report_json.h"

namespace meshwright::cli {
namespace {

std::string rank_path(const std::string& dir, int rank) {
  return fmt::format("{}/rank{}.json", dir, rank);
}

}  // namespace

Result<RunReport> collect_run_report(const std::string& dir, const PlanFile& file) {
  std::vector<RankReport> ranks;
  for (int r = 0; r < file.plan.world_size(); ++r) {
    MW_ASSIGN_OR_RETURN(const std::string text, read_text_file(rank_path(dir, r)));
    MW_ASSIGN_OR_RETURN(RankReport report, parse_rank_report(text, rank_path(dir, r)));
    if (report.plan_hash != file.hash) {
      return Error{.code = ErrorCode::kInternal,
                   .where = rank_path(dir, r),
                   .field = "plan_hash",
                   .value = report.plan_hash,
                   .rule = "is not the plan that was run (" + file.hash + ")"};
    }
    ranks.push_back(std::move(report));
  }
  RunReport out{.plan_hash = file.hash,
                .loss = ranks.front().loss,
                .predicted = file.predicted,
                .measured = measured_report(ranks, Mesh(file.plan.layout())),
                .timeline = {}};
  for (RankReport& r : ranks) out.timeline.ranks.push_back(std::move(r.timeline));
  return out;
}

void remove_old_reports(const std::string& dir) {
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(dir, ec)) {
    const std::string name = entry.path().filename().string();
    const bool ours = name == "report.json" || name == "trace.json" ||
                      (name.starts_with("rank") && name.ends_with(".json"));
    if (ours) std::filesystem::remove(entry.path(), ec);
  }
}

std::string to_json_text(const RunReport& report) {
  Json json = {{"schema_version", 1},
               {"plan_hash", report.plan_hash},
               {"loss", report.loss},
               {"predicted", nullptr},
               {"measured", report_to_json(report.measured)}};
  if (report.predicted) json["predicted"] = report_to_json(*report.predicted);
  return json.dump(2) + "\n";
}

Result<RunReport> read_run_report(const std::string& path) {
  MW_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  MW_ASSIGN_OR_RETURN(const Json json, parse_json(text, path));
  ObjectReader r(json, path);
  RunReport out;
  r.integer("schema_version", {1, 1});
  out.plan_hash = r.text("plan_hash");
  for (const Json& x : r.array("loss"))
    out.loss.push_back(x.is_number() ? x.get<double>() : std::numeric_limits<double>::quiet_NaN());
  const bool predicted = r.has("predicted");
  const Json& measured = r.object("measured");
  const Json& prediction = r.object("predicted", false);
  MW_RETURN_IF_ERROR(r.finish());
  if (predicted) {
    MW_ASSIGN_OR_RETURN(out.predicted, report_from_json(prediction, path, "/predicted"));
  }
  MW_ASSIGN_OR_RETURN(out.measured, report_from_json(measured, path, "/measured"));
  return out;
}

}  // namespace meshwright::cli
