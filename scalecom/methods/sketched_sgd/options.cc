#include "scalecom/methods/sketched_sgd/options.h"

#include "scalecom/core/error.h"
#include "scalecom/kernels/sketch.h"

namespace scalecom::methods::sketched_sgd {

core::OptionTable Options::table() {
  using Bound = core::OptionTable::Bound;
  core::OptionTable table("sketched_sgd");
  table.number("rate", &rate, 1, Bound::kClosed, 1e9);
  table.integer("rows", &rows, 1, kernels::sketch::kMostRows);
  table.integer("columns", &columns, 0, kernels::sketch::kMostColumns);
  table.integer("candidates", &candidates, 1, 1 << 20);
  table.number("momentum", &momentum, 0, Bound::kClosed, 1);
  table.integer("seed", &seed, 0);
  table.custom(
      "first", "dense | compressed",
      [this](const std::string& text) -> std::function<void()> {
        if (text != "dense" && text != "compressed") throw core::UsageError("");
        return [this, dense = text == "dense"] { rates.first_layer_dense = dense; };
      },
      [this] { return std::string(rates.first_layer_dense ? "dense" : "compressed"); });
  table.choice("nonfinite", &nonfinite, {"nan", "error"});
  return table;
}

void Options::read(const core::OptionString& options) {
  Options changed = *this;
  changed.table().read(options.settings);
  if (static_cast<float>(changed.momentum) >= 1.0F) {
    throw core::UsageError(
        "[sketched_sgd] a momentum of 1 never forgets: what it adds grows without bound; allowed: "
        "a number in [0, 1)");
  }
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
