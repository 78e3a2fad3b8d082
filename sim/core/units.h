// Physical quantities as types over double: adding bytes to seconds does not compile.
//
// Double, not int64: 6 x 1e12 parameters x 4e6 tokens = 2.4e19 FLOP exceeds int64, while integers
// up to 2^53 (9 PB) stay exact, so per-rank byte counts are exact. GB = 1e9 and GiB = 2^30, always.
#pragma once

#include <compare>

namespace meshwright {

template <class Tag>
struct Quantity {
  double v = 0.0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : v(value) {}

  constexpr Quantity& operator+=(Quantity o) {
    v += o.v;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    v -= o.v;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity{a.v + b.v}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity{a.v - b.v}; }
  friend constexpr Quantity operator*(Quantity a, double k) { return Quantity{a.v * k}; }
  friend constexpr Quantity operator*(double k, Quantity a) { return Quantity{a.v * k}; }
  friend constexpr Quantity operator/(Quantity a, double k) { return Quantity{a.v / k}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.v / b.v; }
  friend constexpr auto operator<=>(Quantity a, Quantity b) = default;
};

using Seconds = Quantity<struct SecondsTag>;
using Bytes = Quantity<struct BytesTag>;
using Flop = Quantity<struct FlopTag>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;
using FlopPerSecond = Quantity<struct FlopPerSecondTag>;
using Dollars = Quantity<struct DollarsTag>;

constexpr Seconds operator/(Bytes n, BytesPerSecond w) { return Seconds{n.v / w.v}; }
constexpr Seconds operator/(Flop n, FlopPerSecond w) { return Seconds{n.v / w.v}; }
constexpr BytesPerSecond operator/(Bytes n, Seconds t) { return BytesPerSecond{n.v / t.v}; }
constexpr FlopPerSecond operator/(Flop n, Seconds t) { return FlopPerSecond{n.v / t.v}; }

inline constexpr double kBytesPerGiB = 1073741824.0;

namespace literals {
constexpr Seconds operator""_us(long double x) { return Seconds{static_cast<double>(x) * 1e-6}; }
constexpr Seconds operator""_ms(long double x) { return Seconds{static_cast<double>(x) * 1e-3}; }
constexpr BytesPerSecond operator""_GBps(long double x) {
  return BytesPerSecond{static_cast<double>(x) * 1e9};
}
constexpr Bytes operator""_GiB(long double x) {
  return Bytes{static_cast<double>(x) * kBytesPerGiB};
}
constexpr FlopPerSecond operator""_TFLOPs(long double x) {
  return FlopPerSecond{static_cast<double>(x) * 1e12};
}
}  // namespace literals

}  // namespace meshwright
