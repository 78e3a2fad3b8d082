// StepConstants: the fitted constants of the step model, by device class and framework.
//
// Reads: models/fits/frameworks.json. Feeds: DeviceFacts and FrameworkProfile. A set applies to the
// frameworks and device classes it names (none named: all); sets apply in the document's order, so
// that a later, narrower one replaces a value. No set may name a model, a source or a row.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/core/result.h"
#include "sim/step/step_inputs.h"

namespace meshwright {

struct StepConstantSet {
  struct Entry {
    std::string key;
    double value = 0;
    bool fitted = false;
  };
  std::string name;
  std::vector<std::string> frameworks;
  std::vector<std::string> devices;
  std::vector<Entry> entries;
};

class StepConstants {
 public:
  /// models/fits/frameworks.json as built in. Errors: an unknown key, a value that is not positive.
  [[nodiscard]] static Result<StepConstants> builtin();
  [[nodiscard]] static Result<StepConstants> parse(std::string_view text,
                                                   const std::string& origin);

  /// Writes the values of every set that names this framework and device class.
  void apply(const std::string& framework,
             const std::string& device_class,
             DeviceFacts& device,
             FrameworkProfile& profile) const;

  [[nodiscard]] std::vector<StepConstantSet>& sets() { return sets_; }
  [[nodiscard]] const std::vector<StepConstantSet>& sets() const { return sets_; }

 private:
  std::vector<StepConstantSet> sets_;
};

/// A device of models/published/devices.json: data-sheet figures, and its class.
struct PublishedDevice {
  DeviceFacts facts;
  std::string device_class;
};
/// Errors: unknown device (lists the known ones).
[[nodiscard]] Result<PublishedDevice> published_device(const std::string& name);

}  // namespace meshwright
