// --flops: which FLOP a utilisation counts, and how it is written.
#pragma once

#include <string>

#include "sim/advice/flop_count.h"
#include "sim/cli/verb.h"

namespace meshwright::cli {

/// Adds --flops to a verb; `word` keeps what was given.
void add_flops_option(CLI::App& verb, std::string& word);
[[nodiscard]] Result<FlopDefinition> parse_flops(const std::string& word);

/// "MFU", "HFU" or "MFU(causal)": the figure that --flops asked for.
[[nodiscard]] std::string utilization_name(FlopDefinition definition);
/// Its value, 0..1.
[[nodiscard]] double utilization_value(const Utilization& u, FlopDefinition definition);
/// One line that says what is counted.
[[nodiscard]] std::string utilization_legend(FlopDefinition definition);

/// Adds mfu, mfu_flop_definition, hfu and flop_per_step{model, hardware, causal}.
void add_utilization(Json& document,
                     const Plan& plan,
                     const CostModel& cost,
                     Seconds step_time,
                     FlopDefinition definition);

}  // namespace meshwright::cli
