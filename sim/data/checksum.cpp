// SPDX-License-Identifier: Apache-2.0
#include "sim/data/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sim/core/unaligned.h"

namespace meshwright {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87U;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4FU;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9U;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63U;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5U;
constexpr size_t kStripe = 32;

uint64_t round(uint64_t lane, uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

void add_stripe(std::array<uint64_t, 4>& lanes, const std::byte* at) {
  for (size_t i = 0; i < lanes.size(); ++i) {
    lanes[i] = round(lanes[i], load_unaligned<uint64_t>(at + 8 * i));
  }
}

}  // namespace

Checksum64::Checksum64() : lanes_{kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1} {}

void Checksum64::update(std::span<const std::byte> bytes) {
  const size_t waiting = total_ % kStripe;
  total_ += bytes.size();
  if (waiting > 0) {
    const size_t taken = std::min(bytes.size(), kStripe - waiting);
    std::copy_n(bytes.begin(), taken, pending_.begin() + static_cast<std::ptrdiff_t>(waiting));
    bytes = bytes.subspan(taken);
    if (waiting + taken < kStripe) return;
    add_stripe(lanes_, pending_.data());
  }
  for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) add_stripe(lanes_, bytes.data());
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
}

uint64_t Checksum64::digest() const {
  uint64_t hash = kPrime5;
  if (total_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (const uint64_t lane : lanes_) hash = (hash ^ round(0, lane)) * kPrime1 + kPrime4;
  }
  hash += total_;
  const std::byte* at = pending_.data();
  const std::byte* end = at + total_ % kStripe;
  for (; end - at >= 8; at += 8) {
    hash = std::rotl(hash ^ round(0, load_unaligned<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  }
  if (end - at >= 4) {
    hash = std::rotl(hash ^ (load_unaligned<uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
    at += 4;
  }
  for (; at < end; ++at) {
    hash = std::rotl(hash ^ (std::to_integer<uint64_t>(*at) * kPrime5), 11) * kPrime1;
  }
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

uint64_t checksum64(std::span<const std::byte> bytes) {
  Checksum64 sum;
  sum.update(bytes);
  return sum.digest();
}

}  // namespace meshwright
