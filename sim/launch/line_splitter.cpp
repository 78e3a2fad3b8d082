// SPDX-License-Identifier: Apache-2.0
#include "sim/launch/line_splitter.h"

namespace meshwright {

void LineSplitter::add(std::string_view bytes, const OnLine& on_line) {
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, newline);
    const size_t room = max_line_bytes_ - line_.size();
    line_ += piece.substr(0, room);
    cut_ = cut_ || piece.size() > room;
    if (newline == std::string_view::npos) return;
    on_line(line_, cut_);
    line_.clear();
    cut_ = false;
    bytes.remove_prefix(newline + 1);
  }
}

void LineSplitter::finish(const OnLine& on_line) {
  if (!line_.empty()) on_line(line_, cut_);
  line_.clear();
  cut_ = false;
}

}  // namespace meshwright
