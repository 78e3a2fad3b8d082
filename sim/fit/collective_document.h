// models/fits/collectives.json as text, from constants and from what is known about their origin.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/spec/collective_constants.h"

namespace meshwright {

/// How well predictions of unseen groups held.
struct HeldOut {
  size_t rows = 0;
  size_t groups = 0;
  double median = 0;  ///< Of |predicted / measured - 1|.
  double p90 = 0;
  double bias = 0;  ///< Median of predicted / measured - 1.
};

/// Where a set of constants comes from.
struct FitOrigin {
  std::string origin;                  ///< In words.
  std::vector<std::string> fitted_on;  ///< "device: op n, ..." of the rows used.
  HeldOut held_out;                    ///< No rows: not measured.
  std::map<std::string, double> relative_errors;
};

/// `nvlink` pools the NVLink generations' held-out rows. `origins` by generation; a generation
/// without one keeps the origin that `previous` prints.
[[nodiscard]] std::string collective_document(const CollectiveConstants& constants,
                                              const std::map<std::string, FitOrigin>& origins,
                                              const HeldOut& nvlink,
                                              std::string_view previous);

}  // namespace meshwright
