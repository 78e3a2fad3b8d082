// SPDX-License-Identifier: Apache-2.0
// Rendezvous: the store all ranks share, and one Gloo group per distinct list of ranks under its
// own prefix.
#include <algorithm>
#include <map>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "exec/comm/communicator.h"
#include "exec/comm/communicator_impl.h"
#include "exec/comm/gloo_backend.h"
#include "sim/core/check.h"

namespace meshwright {

namespace {

struct StoreUrl {
  bool is_file = false;
  std::string path_or_host;
  uint16_t port = 0;
};

StoreUrl parse_store_url(const std::string& url) {
  if (url.starts_with("file:") && url.size() > 5) return {true, url.substr(5), 0};
  const size_t colon = url.rfind(':');
  if (url.starts_with("tcp:") && colon > 4 && colon + 1 < url.size() && url.size() - colon <= 6 &&
      std::all_of(url.begin() + static_cast<std::ptrdiff_t>(colon) + 1, url.end(), [](char c) {
        return c >= '0' && c <= '9';
      })) {
    const int port = std::stoi(url.substr(colon + 1));
    if (port >= 1 && port <= 65535)
      return {false, url.substr(4, colon - 4), static_cast<uint16_t>(port)};
  }
  throw std::invalid_argument("store '" + url +
                              "': want file:PATH or tcp:HOST:PORT, port 1..65535");
}

c10::intrusive_ptr<c10d::Store> open_store(const StoreUrl& url,
                                           int rank,
                                           int world_size,
                                           std::chrono::milliseconds timeout) {
  c10::intrusive_ptr<c10d::Store> store;
  if (url.is_file) {
    store = c10::make_intrusive<c10d::FileStore>(url.path_or_host, world_size);
  } else {
    c10d::TCPStoreOptions options;
    options.port = url.port;
    options.isServer = rank == 0;
    options.numWorkers = static_cast<std::size_t>(world_size);
    options.timeout = timeout;
    store = c10::make_intrusive<c10d::TCPStore>(url.path_or_host, options);
  }
  store->setTimeout(timeout);
  return store;
}

// The address the groups listen on: loopback when all ranks are on this machine, else the host
// name's.
std::string listen_host(const StoreUrl& url) {
  const bool local =
      url.is_file || url.path_or_host == "localhost" || url.path_or_host.starts_with("127.");
  return local ? "127.0.0.1" : "";
}

}  // namespace

struct CommWorld::Impl {
  int rank;
  int world_size;
  std::chrono::milliseconds timeout;
  c10::intrusive_ptr<c10d::Store> store;
  std::string host;
  std::unique_ptr<GlooDevice> device;  ///< Made by the first group of more than one rank.
  std::map<std::vector<int>, std::shared_ptr<Communicator>> groups;
};

CommWorld::CommWorld(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

CommWorld::~CommWorld() = default;

std::unique_ptr<CommWorld> CommWorld::connect(const std::string& store_url,
                                              int rank,
                                              int world_size,
                                              std::chrono::milliseconds timeout) {
  MW_CHECK(world_size >= 1 && rank >= 0 && rank < world_size,
           "rank " + std::to_string(rank) + " of " + std::to_string(world_size));
  const StoreUrl url = parse_store_url(store_url);
  auto impl = std::make_unique<Impl>();
  impl->rank = rank;
  impl->world_size = world_size;
  impl->timeout = timeout;
  impl->host = listen_host(url);
  if (world_size > 1) impl->store = open_store(url, rank, world_size, timeout);
  return std::unique_ptr<CommWorld>(new CommWorld(std::move(impl)));
}

int CommWorld::rank() const { return impl_->rank; }

int CommWorld::world_size() const { return impl_->world_size; }

std::shared_ptr<Communicator> CommWorld::group(const std::vector<int>& ranks) {
  std::string name = "group";
  for (size_t i = 0; i < ranks.size(); ++i) {
    MW_CHECK(ranks[i] >= 0 && ranks[i] < impl_->world_size, "rank " + std::to_string(ranks[i]));
    MW_CHECK(std::count(ranks.begin(), ranks.end(), ranks[i]) == 1, "ranks must be distinct");
    name += '_';
    name += std::to_string(ranks[i]);
  }
  const auto self = std::find(ranks.begin(), ranks.end(), impl_->rank);
  if (self == ranks.end()) return nullptr;
  auto& group = impl_->groups[ranks];
  if (group) return group;

  auto inside = std::make_unique<Communicator::Impl>();
  inside->rank = static_cast<int>(self - ranks.begin());
  inside->size = static_cast<int>(ranks.size());
  if (inside->size > 1) {
    if (!impl_->device) impl_->device = std::make_unique<GlooDevice>(impl_->host);
    inside->backend =
        impl_->device->make_group(c10::make_intrusive<c10d::PrefixStore>(name, impl_->store),
                                  inside->rank,
                                  inside->size,
                                  impl_->timeout);
  }
  group = std::shared_ptr<Communicator>(new Communicator(std::move(inside)));
  return group;
}

}  // namespace meshwright
