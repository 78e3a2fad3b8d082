// The one door to Gloo: makes c10d's Gloo process groups and hands them out as plain c10d::Backend.
//
// Only gloo_backend.cpp sees our declarations of Gloo's headers; all others use c10d's public base
// class.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>
#include <string>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace meshwright {

/// One network interface with its event thread, shared by all groups of a process.
class GlooDevice {
 public:
  /// Binds to the interface of `host`; an empty `host` means this machine's own host name.
  explicit GlooDevice(const std::string& host);
  ~GlooDevice();

  /// Connects `size` ranks through `store` (a prefix of it that no other group uses). Blocks until
  /// all are there.
  c10::intrusive_ptr<c10d::Backend> make_group(const c10::intrusive_ptr<c10d::Store>& store,
                                               int rank,
                                               int size,
                                               std::chrono::milliseconds timeout) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace meshwright
