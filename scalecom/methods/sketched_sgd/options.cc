#include "scalecom/methods/sketched_sgd/options.h"

#include "scalecom/kernels/sketch.h"
#include "scalecom/methods/rate_options.h"

namespace scalecom::methods::sketched_sgd {
namespace {

// With 1 what is added would grow without bound.
constexpr double kMostMomentum = 0.9999;

}  // namespace

core::OptionTable Options::table() {
  using Bound = core::OptionTable::Bound;
  core::OptionTable table("sketched_sgd");
  table.number("rate", &rate, 1, Bound::kClosed, 1e9);
  table.integer("rows", &rows, 1, kernels::sketch::kMostRows);
  table.integer("columns", &columns, 0, kernels::sketch::kMostColumns);
  table.integer("candidates", &candidates, 1, 1 << 20);
  table.number("momentum", &momentum, 0, Bound::kClosed, kMostMomentum);
  table.integer("seed", &seed, 0);
  declare_first(table, &rates);
  nonfinite.declare(table);
  return table;
}

void Options::read(const core::OptionString& options) {
  Options changed = *this;
  changed.table().read(options.settings);
  changed.rates.rate = changed.rate;
  *this = changed;
}

std::string Options::text() const {
  Options copy = *this;
  return copy.table().text();
}

std::string Options::allowed() {
  Options defaults;
  return defaults.table().allowed();
}

}  // namespace scalecom::methods::sketched_sgd
