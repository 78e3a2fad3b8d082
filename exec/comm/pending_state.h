// Inside of a Pending, shared by the sources of this folder: the works of an operation and their
// tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "exec/comm/communicator.h"

namespace meshwright {

struct Pending::State {
  std::vector<at::Tensor> tensors;
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
};

}  // namespace meshwright
