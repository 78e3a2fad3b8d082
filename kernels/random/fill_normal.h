// Normal random weights that do not depend on how a tensor is sharded.
//
// Element g of a tensor (row-major global index) is lane g % 4 of two Box-Muller pairs over
// philox4x32_10(counter = g / 4 and the tensor's key, key = the seed), for g < 2^63. Values reach
// +-6.7 standard deviations, as a uniform has 32 bits. Logarithm, sine and cosine are own
// polynomials, because libm differs between versions and processors; the bits are the same
// everywhere. About 20 ns per element.
#pragma once

#include <cstdint>

namespace meshwright::kernels {

/// Fills out [rows, cols], the shard whose element (0, 0) is (row_begin, col_begin) of a tensor
/// with row_stride_global columns, with mean 0 and standard deviation `stddev`. Any shard equals
/// the slice of the whole.
///
/// @param tensor_key  kernels/random/tensor_key.h of the tensor's global name.
void fill_normal(float* out,
                 std::int64_t rows,
                 std::int64_t cols,
                 std::int64_t row_stride_global,
                 std::int64_t row_begin,
                 std::int64_t col_begin,
                 std::uint64_t seed,
                 std::uint64_t tensor_key,
                 float stddev);

}  // namespace meshwright::kernels
