// EventLoop: work items that all progress at one common rate.
//
// Each rank's device gives rate 1. Where ranks share `cores`, every active item progresses at
// min(1, cores / sum of active weights) (processor sharing), divided by `oversubscription` while
// ranks outnumber cores. Because the rate is common, items finish in the order of their virtual
// finish time (virtual clock plus work), whatever the rate does meanwhile: one heap serves both
// cases.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

namespace meshwright {

class EventLoop {
 public:
  /// `cores`: shared cores, or nothing when every rank has its own device.
  EventLoop(std::optional<int> cores, double oversubscription)
      : cores_(cores), oversubscription_(oversubscription) {}

  /// Starts an item of `work` seconds at rate 1 that keeps `weight` cores busy; `id` comes back
  /// from next().
  void start(int id, double work, double weight);

  /// Advances to the next finished item and returns its id; nothing when no item is active.
  std::optional<int> next();

  [[nodiscard]] double now() const { return now_; }

 private:
  struct Item {
    double virtual_finish;
    int64_t sequence;  ///< Ties finish in the order they were started.
    int id;
    double weight;
    bool operator>(const Item& o) const {
      return virtual_finish != o.virtual_finish ? virtual_finish > o.virtual_finish
                                                : sequence > o.sequence;
    }
  };
  [[nodiscard]] double rate() const;

  std::optional<int> cores_;
  double oversubscription_;
  double now_ = 0;
  double virtual_now_ = 0;
  double active_weight_ = 0;
  int64_t sequence_ = 0;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> items_;
};

}  // namespace meshwright
