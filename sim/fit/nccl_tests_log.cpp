// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/nccl_tests_log.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <regex>
#include <set>
#include <vector>

#include "sim/core/json_reader.h"

namespace meshwright {
namespace {

/// One result of a run.
struct NcclTestsRow {
  int64_t line = 0;
  double bytes = 0;
  double time_us = 0;
};

/// What stands above (or around) the results.
struct NcclTestsRun {
  std::string op;  ///< "all_reduce", ...; empty where the text does not tell.
  std::string device;
  int num_ranks = 0;
  std::set<std::string> hosts;
  int devices_per_thread = 1;
  std::vector<NcclTestsRow> rows;
};

/// Device names as CUDA prints them, and the link that joins such devices in a node.
struct NamedLink {
  const char* device;
  const char* link;
};
constexpr NamedLink kNamedLinks[] = {{"A100-SXM", "NVLink3"},
                                     {"A100 80GB PCIe", "PCIe 4.0"},
                                     {"A100-PCIE", "PCIe 4.0"},
                                     {"A800-SXM", "NVLink3"},
                                     {"H100 PCIe", "PCIe 5.0"},
                                     {"H100 NVL", "PCIe 5.0"},
                                     {"H100", "NVLink4"},
                                     {"H200", "NVLink4"},
                                     {"H800", "NVLink4"},
                                     {"H20", "NVLink4"},
                                     {"GH200", "NVLink4"},
                                     {"B200", "NVLink5"},
                                     {"B300", "NVLink5"},
                                     {"L40S", "PCIe 4.0"},
                                     {"RTX PRO 6000", "PCIe 5.0"},
                                     {"RTX 5090", "PCIe 5.0"},
                                     {"RTX 4090", "PCIe 4.0"},
                                     {"RTX 3090", "PCIe 4.0"}};

std::string link_of_device(const std::string& device) {
  for (const NamedLink& k : kNamedLinks) {
    if (device.find(k.device) != std::string::npos) return k.link;
  }
  return "";
}

/// "all_reduce_perf", or a path to it, names the operation.
std::string op_of_program(const std::string& text) {
  static const std::regex kProgram(
      R"((all_reduce|all_gather|reduce_scatter|alltoall|sendrecv)_perf)");
  std::smatch m;
  return std::regex_search(text, m, kProgram) ? m[1].str() : "";
}

std::optional<double> as_number(const std::string& word) {
  double value = 0;
  const auto [end, ec] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (ec != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (const std::string& word : split(line, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

/// size count type [redop] [root] time algbw busbw ...: the time is the first number with at least
/// two more after it, behind the words and the root.
std::optional<NcclTestsRow> result_row(const std::string& line, size_t time_column) {
  const std::vector<std::string> words = words_of(line);
  if (words.size() < time_column + 3) return std::nullopt;
  const std::optional<double> bytes = as_number(words[0]);
  const std::optional<double> count = as_number(words[1]);
  const std::optional<double> time = as_number(words[time_column]);
  if (!bytes || !count || !time || !(*time > 0)) return std::nullopt;
  return NcclTestsRow{.bytes = *bytes, .time_us = *time};
}

/// The runs of a text log: each begins with a header line or the first "# Rank" after results.
std::vector<NcclTestsRun> runs_of_text(const std::string& text) {
  static const std::regex kRank(
      R"(#\s+Rank\s+\d+\s+(?:Group\s+\d+\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s+(.*\S))");
  static const std::regex kPerThread(R"(nGpus\s+(\d+))");
  std::vector<NcclTestsRun> runs(1);
  size_t time_column = 5;
  int64_t line_number = 0;
  for (std::string line : split(text, '\n')) {
    ++line_number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    std::smatch m;
    if (std::regex_search(line, m, kRank)) {
      if (!runs.back().rows.empty()) runs.emplace_back();
      NcclTestsRun& run = runs.back();
      ++run.num_ranks;
      run.hosts.insert(m[1].str());
      run.device = m[2].str();
      continue;
    }
    if (const std::string op = op_of_program(line);
        !op.empty() && line.find("concluded") == std::string::npos) {
      if (!runs.back().rows.empty()) runs.emplace_back();
      runs.back().op = op;
      continue;
    }
    if (line.starts_with("# nThread") && std::regex_search(line, m, kPerThread)) {
      if (!runs.back().rows.empty()) runs.emplace_back();
      runs.back().devices_per_thread = std::stoi(m[1].str());
      continue;
    }
    if (line.find("busbw") != std::string::npos) {
      // The header's words, without "#", name the columns.
      const std::vector<std::string> names = words_of(line.substr(line.find_first_not_of("# ")));
      for (size_t i = 0; i < names.size(); ++i) {
        if (names[i] == "time" || names[i] == "cputime") {
          time_column = i;
          break;
        }
      }
      continue;
    }
    if (std::optional<NcclTestsRow> row = result_row(line, time_column)) {
      row->line = line_number;
      runs.back().rows.push_back(*row);
    }
  }
  return runs;
}

/// The document that --json writes (nccl-tests src/util.cu): config.devices holds one entry per
/// process, results one per size.
NcclTestsRun run_of_json(const Json& json) {
  NcclTestsRun run;
  const Json empty_object = Json::object(), empty_array = Json::array();
  const auto part = [](const Json& parent, const char* key, const Json& otherwise) -> const Json& {
    return parent.is_object() && parent.contains(key) ? parent[key] : otherwise;
  };
  const Json& args = part(json, "args", empty_array);
  if (args.is_array() && !args.empty() && args[0].is_string()) {
    run.op = op_of_program(args[0].get<std::string>());
  }
  const Json& config = part(json, "config", empty_object);
  const auto count = [&](const char* key) {
    return config.contains(key) && config[key].is_number_integer() ? config[key].get<int>() : 1;
  };
  run.devices_per_thread = count("ngpus");
  const Json& devices = part(config, "devices", empty_array);
  for (const Json& d : devices) {
    run.num_ranks += count("nthreads") * count("ngpus");
    if (d.is_object()) {
      run.hosts.insert(d.value("hostname", ""));
      run.device = d.value("device_info", "");
    }
  }
  int64_t index = 1;
  for (const Json& result : part(json, "results", empty_array)) {
    ++index;  // the first result stands below the header of the table
    const Json& body = part(result, "out_of_place", empty_object);
    if (!body.is_object() || !body.contains("time") || !body["time"].is_number()) continue;
    if (!result.contains("size") || !result["size"].is_number()) continue;
    run.rows.push_back({index, result["size"].get<double>(), body["time"].get<double>()});
  }
  return run;
}

std::optional<Error> unusable(const NcclTestsRun& run, const std::string& origin) {
  if (run.op.empty()) {
    return Error{.where = origin,
                 .field = "operation",
                 .rule = "is not named by the log",
                 .remedy =
                     "keep the command line or the line \"# Collective test starting: "
                     "all_reduce_perf\" in it"};
  }
  if (run.num_ranks < 2) {
    return Error{.where = origin,
                 .field = "ranks",
                 .value = std::to_string(run.num_ranks),
                 .rule = "must be at least 2, counted from the lines \"# Rank\"",
                 .remedy = "keep these lines in the log, and run on two devices or more"};
  }
  if (link_of_device(run.device).empty()) {
    return Error{.where = origin,
                 .field = "device",
                 .value = run.device,
                 .rule = "is none whose links are known"};
  }
  return std::nullopt;
}

std::string quoted(const std::string& cell) {
  std::string out = "\"";
  for (const char c : cell) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

/// A CSV whose rows stand on the lines of the log they come from.
std::string table_text(const std::vector<NcclTestsRun>& runs, const std::string& origin) {
  std::string text = "gpu,interconnect,ngpus,op,bytes,time_us,source,notes\n";
  int64_t line = 2;
  for (const NcclTestsRun& run : runs) {
    const std::string link =
        link_of_device(run.device) +
        (run.hosts.size() > 1 ? fmt::format(", {} nodes, NDR", run.hosts.size()) : std::string());
    for (const NcclTestsRow& row : run.rows) {
      for (; line < row.line; ++line) text += '\n';
      text +=
          fmt::format("{},{},{},{},{},{},{},{}\n",
                      quoted(run.device),
                      quoted(link),
                      run.num_ranks,
                      run.op,
                      row.bytes,
                      row.time_us,
                      quoted(origin),
                      run.devices_per_thread > 1 ? "nccl-tests log; one thread launches all devices"
                                                 : "nccl-tests log");
      ++line;
    }
  }
  return text;
}

}  // namespace

bool is_nccl_tests_output(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  if (text[first] == '{') {
    return text.find("\"out_of_place\"") != std::string_view::npos;
  }
  return text.find("out-of-place") != std::string_view::npos &&
         text.find("algbw") != std::string_view::npos && text.find("# ") != std::string_view::npos;
}

Result<CsvTable> parse_nccl_tests_output(std::string_view text, const std::string& origin) {
  std::vector<NcclTestsRun> runs;
  if (text[std::min(text.size() - 1, text.find_first_not_of(" \t\r\n"))] == '{') {
    MW_ASSIGN_OR_RETURN(const Json json, parse_json(text, origin));
    runs.push_back(run_of_json(json));
  } else {
    runs = runs_of_text(std::string(text));
  }
  std::erase_if(runs, [](const NcclTestsRun& run) { return run.rows.empty(); });
  if (runs.empty()) {
    return Error{.where = origin,
                 .rule = "holds no result row of nccl-tests",
                 .remedy = "a row is: size count type redop root time algbw busbw ..."};
  }
  for (const NcclTestsRun& run : runs) {
    if (const std::optional<Error> error = unusable(run, origin)) return *error;
  }
  return CsvTable::parse(table_text(runs, origin), origin);
}

Result<CsvTable> read_measurement_table(const std::string& path) {
  MW_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  return is_nccl_tests_output(text) ? parse_nccl_tests_output(text, path)
                                    : CsvTable::parse(text, path);
}

}  // namespace meshwright
