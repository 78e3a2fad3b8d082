// Fitted constants of the operator models: the documents of models/fits, or a user's own.
//
// Reads: JSON that `meshwright fit` writes. Feeds: the cost model and `meshwright validate`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/result.h"
#include "sim/spec/cluster_spec.h"

namespace meshwright {

/// How constants fitted on one half of the rows predict the other half.
struct HeldOutAccuracy {
  int64_t rows = 0;
  double median = 0;  ///< Of |predicted / measured - 1|.
  double p90 = 0;     ///< Of the same.
  double bias = 0;    ///< Median of predicted / measured - 1.
  /// 10 % and 90 % quantiles of measured / predicted: the 80 % interval of a prediction of 1.
  double ratio_low = 1, ratio_high = 1;
};

struct OperatorFit {
  std::string device;  ///< Of models/hardware.
  std::string kind;    ///< E.g. "bf16", "prefill".
  int64_t rows = 0;    ///< Fitted on; the held-out half included.
  bool marked =
      false;  ///< Of a set unlike the others (sim/validate/*_table.cpp): never transferred.
  std::map<std::string, double> constants;
  HeldOutAccuracy held_out;
};

struct OperatorFits {
  std::string family;  ///< "gemm" or "attention".
  std::string origin;  ///< Of the measurements.
  std::vector<OperatorFit> fits;
};

[[nodiscard]] Result<OperatorFits> parse_operator_fits(std::string_view text,
                                                       const std::string& origin);
/// The document as text, ready for a file.
[[nodiscard]] std::string operator_fits_text(const OperatorFits& fits);

/// models/fits/<family>.json.
[[nodiscard]] const OperatorFits& builtin_operator_fits(const std::string& family);

/// The constants to price `kind` on `device` with.
struct ChosenFit {
  const OperatorFit* fit = nullptr;
  /// Constants of another device of the architecture, scaled by this one's data sheet alone.
  bool transferred = false;
};

/// The device's own fit, else that of the device of its architecture that is nearest in peak and
/// bandwidth; nothing where the architecture has none. Within an architecture the data sheet is
/// enough (h100 to h200 in bf16: median 5.2 % against 4.4 % of an own fit), beyond it it is not.
[[nodiscard]] std::optional<ChosenFit> choose_fit(const OperatorFits& fits,
                                                  const DeviceSpec& device,
                                                  std::string_view kind);

}  // namespace meshwright
