// Where training samples come from: a token file, or random tokens for verify and calibrate.
//
// Feeds: exec/data/batch_reader.h, which decides which sample a rank reads when. A source only
// answers for one sample; it has no position, so every layout reads the same data.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/data/token_file.h"

namespace meshwright {

/// The label of a token that does not count in the loss (PyTorch's value).
inline constexpr int64_t kIgnoreLabel = -100;

/// A numbered set of samples of one sequence length. Const calls are thread-safe.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  [[nodiscard]] virtual int64_t num_samples() const = 0;
  /// True when no label is kIgnoreLabel: nobody then needs to read labels only to count them.
  [[nodiscard]] virtual bool every_token_counts() const = 0;
  /// Writes seq_len ids and labels of sample 0 <= s < num_samples().
  virtual void read(int64_t sample, int64_t* ids, int64_t* labels) const = 0;
};

/// Samples of `file`, which must hold at least one of `seq_len` tokens.
[[nodiscard]] std::unique_ptr<SampleSource> token_file_source(TokenFile file, int64_t seq_len);

/// Uniformly random tokens, a pure function of (seed, sample, position). A label is the token after
/// its input.
[[nodiscard]] std::unique_ptr<SampleSource> random_source(int64_t vocab_size,
                                                          int64_t seq_len,
                                                          uint64_t seed);

}  // namespace meshwright
