#pragma once

#include "scalecom/kernels/cpu/bins.h"
#include "scalecom/kernels/cpu/convert.h"
#include "scalecom/kernels/cpu/items.h"
#include "scalecom/kernels/cpu/lowrank.h"
#include "scalecom/kernels/cpu/pass.h"
#include "scalecom/kernels/cpu/sketch.h"

namespace scalecom::kernels::cpu {

template <typename L>
constexpr Table make_table(const char* isa) {
  return {.isa = isa,
          .accumulate = accumulate<L>,
          .lead = lead<L>,
          .take = take<L>,
          .follow = follow<L>,
          .keys = keys<L>,
          .zero_and_put = zero_and_put<L>,
          .put = put<L>,
          .load = load<L>,
          .store = store<L>,
          .narrow = narrow<L>,
          .widen = widen<L>,
          .low_rank = {accumulate_low_rank<L>, project_low_rank<L>, expand_low_rank<L>},
          .sketch = {find_places<L>},
          .bins = {find_in_bin<L>}};
}

}  // namespace scalecom::kernels::cpu
