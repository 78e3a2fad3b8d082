// Turns the bytes of a pipe, which arrive in any pieces, into lines of bounded length.
//
// Why bounded: a worker that writes without a newline must not eat the supervisor's memory.
// Reads: what sim/launch/launcher.cpp reads from workers. Feeds: its event parser and stderr lines.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace meshwright {

inline constexpr size_t kMaxLineBytes = size_t{1} << 20;

/// Not thread-safe; one for each pipe.
class LineSplitter {
 public:
  /// `cut`: the line was longer than the limit and `line` is only its start.
  using OnLine = std::function<void(std::string_view line, bool cut)>;

  explicit LineSplitter(size_t max_line_bytes = kMaxLineBytes) : max_line_bytes_(max_line_bytes) {}

  /// Adds bytes; calls on_line for each line that is complete now, without its newline.
  void add(std::string_view bytes, const OnLine& on_line);

  /// The pipe is at its end: a last line without a newline is a line, too.
  void finish(const OnLine& on_line);

 private:
  size_t max_line_bytes_;
  std::string line_;
  bool cut_ = false;
};

}  // namespace meshwright
