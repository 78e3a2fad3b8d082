// SPDX-License-Identifier: Apache-2.0
#include "exec/data/sample_source.h"

#include <utility>

#include "kernels/random/philox.h"
#include "sim/core/check.h"

namespace meshwright {
namespace {

class TokenFileSource final : public SampleSource {
 public:
  TokenFileSource(TokenFile file, int64_t seq_len) : file_(std::move(file)), seq_len_(seq_len) {
    MW_CHECK(file_.num_samples(seq_len_) >= 1, "the token file holds no sample");
  }
  [[nodiscard]] int64_t num_samples() const override { return file_.num_samples(seq_len_); }
  [[nodiscard]] bool every_token_counts() const override { return !file_.info().has_mask; }
  void read(int64_t sample, int64_t* ids, int64_t* labels) const override {
    file_.read_sample(sample, seq_len_, ids, labels, kIgnoreLabel);
  }

 private:
  TokenFile file_;
  int64_t seq_len_;
};

class RandomSource final : public SampleSource {
 public:
  RandomSource(int64_t vocab_size, int64_t seq_len, uint64_t seed)
      : vocab_size_(static_cast<uint64_t>(vocab_size)), seq_len_(seq_len), seed_(seed) {}
  [[nodiscard]] int64_t num_samples() const override { return int64_t{1} << 40; }
  [[nodiscard]] bool every_token_counts() const override { return true; }
  void read(int64_t sample, int64_t* ids, int64_t* labels) const override {
    for (int64_t i = 0; i < seq_len_; ++i) {
      ids[i] = token(sample, i);
      labels[i] = token(sample, i + 1);
    }
  }

 private:
  [[nodiscard]] int64_t token(int64_t sample, int64_t position) const {
    const auto s = static_cast<uint64_t>(sample);
    const auto p = static_cast<uint64_t>(position);
    const auto words =
        kernels::philox4x32_10({static_cast<uint32_t>(p),
                                static_cast<uint32_t>(p >> 32),
                                static_cast<uint32_t>(s),
                                static_cast<uint32_t>(s >> 32)},
                               {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
    return static_cast<int64_t>(((uint64_t{words[1]} << 32) | words[0]) % vocab_size_);
  }

  uint64_t vocab_size_;
  int64_t seq_len_;
  uint64_t seed_;
};

}  // namespace

std::unique_ptr<SampleSource> token_file_source(TokenFile file, int64_t seq_len) {
  return std::make_unique<TokenFileSource>(std::move(file), seq_len);
}

std::unique_ptr<SampleSource> random_source(int64_t vocab_size, int64_t seq_len, uint64_t seed) {
  return std::make_unique<RandomSource>(vocab_size, seq_len, seed);
}

}  // namespace meshwright
