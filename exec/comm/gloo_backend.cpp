// SPDX-License-Identifier: Apache-2.0
// The only source file that includes ProcessGroupGloo.hpp, and with it the declarations in
// gloo_headers/.
#include "exec/comm/gloo_backend.h"

#include <torch/headeronly/version.h>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR != 11
#error \
    "exec/comm/gloo_headers was checked against torch 2.11: compare ProcessGroupGloo.hpp before changing this line"
#endif

namespace meshwright {

namespace {

// Worker threads per group, so as many operations of a group run at once. Two (also c10d's
// default): eight all-reduces in flight, 4 KB or 1 MB, took about half the time of one thread, with
// 2 and with 4 ranks.
constexpr int kThreadsPerGroup = 2;

}  // namespace

struct GlooDevice::Impl {
  std::shared_ptr<::gloo::transport::Device> device;
};

GlooDevice::GlooDevice(const std::string& host)
    : impl_(std::make_unique<Impl>(
          Impl{host.empty() ? c10d::ProcessGroupGloo::createDefaultDevice()
                            : c10d::ProcessGroupGloo::createDeviceForHostname(host)})) {}

GlooDevice::~GlooDevice() = default;

c10::intrusive_ptr<c10d::Backend> GlooDevice::make_group(
    const c10::intrusive_ptr<c10d::Store>& store,
    int rank,
    int size,
    std::chrono::milliseconds timeout) const {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->threads = kThreadsPerGroup;
  options->devices.push_back(impl_->device);
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, options);
}

}  // namespace meshwright
