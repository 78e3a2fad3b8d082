// SPDX-License-Identifier: Apache-2.0
#include "exec/model/operator_args.h"

namespace meshwright::operators {
namespace {

/// True when fault injection leaves this sum out.
bool skipped(OperatorContext& ctx) {
  if (ctx.num_skipped_sums == 0) return false;
  --ctx.num_skipped_sums;
  return true;
}

}  // namespace

void all_reduce(const OperatorArgs& a) {
  if (!skipped(a.ctx())) a.ctx().tp.all_reduce(a.out(0));
}

void all_reduce_max(const OperatorArgs& a) { a.ctx().tp.all_reduce(a.out(0), ReduceOp::kMax); }

void all_gather(const OperatorArgs& a) { a.ctx().tp.all_gather(a.out(0), a.in(0)); }

void reduce_scatter(const OperatorArgs& a) {
  Communicator& tp = a.ctx().tp;
  if (skipped(a.ctx())) {
    const int64_t rows = a.out(0).size(0);
    a.out(0).copy_(a.in(0).narrow(0, tp.rank() * rows, rows));
  } else {
    tp.reduce_scatter(a.out(0), a.in(0));
  }
}

}  // namespace meshwright::operators
