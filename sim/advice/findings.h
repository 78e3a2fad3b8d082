// Findings: what a newcomer should look at in a step, and what each remedy would do.
//
// Reads: a Plan, its simulation, its CostModel. Feeds: explain. The checklist of operators of large
// jobs as figures: each check has a value, a threshold, a cause and remedies; a remedy that is a
// change of layout or workload is simulated, so that its time and memory stand beside the plan's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/advice/variants.h"
#include "sim/simulator/simulate.h"

namespace meshwright {

/// Thresholds of the checklist, as fractions of the step, of the memory, or of the peak.
inline constexpr double kMuchCommunication = 0.20;
inline constexpr double kMuchBubble = 0.10;
inline constexpr double kMuchHost = 0.05;
inline constexpr double kMuchDataParallel = 0.05;
inline constexpr double kFullMemory = 0.95;
inline constexpr double kLowMfu = 0.30;
inline constexpr double kAimedMfu = 0.40;

/// What to do, and what it would give.
struct Remedy {
  std::string action;
  /// Of the changed plan; nothing where the remedy is no change of plan. With another batch the
  /// time is that of the larger step.
  std::optional<Variant> result;
  std::string effect;  ///< Where there is no result: an estimate, and what it is made of.
};

struct Finding {
  std::string id;  ///< "communication", "bubble", ...: stable, for scripts.
  double value = 0;
  double threshold = 0;
  std::string text;  ///< Value against threshold, for people.
  std::string cause;
  std::string note;  ///< Where the chapter's figure differs; may be empty.
  std::vector<Remedy> remedies;
};

struct Diagnosis {
  std::vector<Finding> findings;    ///< In the order of the checklist.
  std::vector<std::string> passed;  ///< Checks that found nothing, as "bubble 3.1 %".
};

[[nodiscard]] Diagnosis diagnose(const Plan& plan,
                                 const Simulation& simulation,
                                 const CostModel& cost);

/// Exposed communication of all axes.
[[nodiscard]] Seconds exposed_communication(const StepReport& report);

}  // namespace meshwright
