// Inside of a Communicator, shared by the sources of this folder.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "exec/comm/communicator.h"

namespace meshwright {

struct Communicator::Impl {
  c10::intrusive_ptr<c10d::Backend> backend;  ///< Null for a group of one rank.
  int rank = 0;
  int size = 1;
  int num_gathers = 0;  ///< Counted alike on all ranks: numbers the tags of all_gather.
};

}  // namespace meshwright
