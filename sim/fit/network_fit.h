// Fits NetworkConstants of one class of networks, given the constants of the links inside nodes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/fit/collective_document.h"
#include "sim/fit/collective_folds.h"

namespace meshwright {

struct NetworkClass {
  const char* generation;
  double line_rate_GBps;  ///< One NIC, one direction.
  bool ll128;             ///< NetworkConstants::ll128.
};

[[nodiscard]] std::span<const NetworkClass> network_classes();

struct FittedNetwork {
  NetworkConstants constants;
  FitOrigin origin;
};

/// Nothing where no row crosses such a network.
[[nodiscard]] std::optional<FittedNetwork> fit_network_class(
    const NetworkClass& network,
    const CollectiveConstants& constants,
    const std::vector<CollectiveRow>& rows);

}  // namespace meshwright
