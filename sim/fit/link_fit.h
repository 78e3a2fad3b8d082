// Fits LinkConstants of one link generation (see collective_fit.h for the procedure).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/fit/collective_document.h"
#include "sim/fit/collective_folds.h"

namespace meshwright {

/// A generation of links: what is known of it before any measurement.
struct LinkClass {
  const char* generation;
  double line_rate_GBps;  ///< Data sheet, one direction.
  bool nvlink;            ///< Else PCIe, for which NCCL has neither LL128 nor a switch point.
  int nvls_channels;      ///< NCCL's NVLS_NCHANNELS_SM90 and _SM100_NVL (src/transport/nvls.cc).
};

[[nodiscard]] std::span<const LinkClass> link_classes();

struct FittedLink {
  LinkConstants constants;
  FitOrigin origin;
  std::vector<double> unseen;  ///< Predicted / measured of the rows behind origin.held_out.
};

/// Nothing where no row of `rows` is of this class and fit to be used. A few rows of one's own do
/// not determine all constants: the fit then starts at `known`, and what the rows do not touch
/// stays there.
[[nodiscard]] std::optional<FittedLink> fit_link_class(const LinkClass& link,
                                                       const NcclConstants& nccl,
                                                       const LinkConstants* known,
                                                       const std::vector<CollectiveRow>& rows);

}  // namespace meshwright
