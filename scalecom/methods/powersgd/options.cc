#include "scalecom/methods/powersgd/options.h"

namespace scalecom::methods::powersgd {

core::OptionTable Options::table() {
  // Thin factors of a matrix too large for any memory are still thinner than this.
  constexpr std::int64_t kMostRank = 1 << 20;
  core::OptionTable table("powersgd");
  table.integer("rank", &rank, 1, kMostRank);
  table.choice("warm_start", &warm_start, {"on", "off"});
  table.integer("seed", &seed, 0);
  table.integer("warmup", &warmup, 0);
  nonfinite.declare(table);
  return table;
}

void Options::read(const core::OptionString& options) {
  table().read(options.settings);
}

std::string Options::text() const {
  Options copy = *this;
  return copy.table().text();
}

std::string Options::allowed() {
  Options defaults;
  return defaults.table().allowed();
}

}  // namespace scalecom::methods::powersgd
