#include "scalecom/methods/sparse/options.h"

#include "scalecom/methods/rate_options.h"

namespace scalecom::methods::sparse {

void Options::declare(core::OptionTable& table) {
  table.number("rate", &rate, 1, core::OptionTable::Bound::kClosed, 1e9);
  declare_rates(table, &rates);
  nonfinite.declare(table);
}

void Options::declare_warmup(core::OptionTable& table) {
  table.integer("warmup", &dense_steps, 0);
}

}  // namespace scalecom::methods::sparse
