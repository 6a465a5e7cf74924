#include "scalecom/methods/rate_options.h"

#include "scalecom/core/error.h"

namespace scalecom::methods {

void declare_rates(core::OptionTable& table, layout::RatePolicy* policy) {
  table.custom(
      "rates", "uniform | flops | paper | PATTERN:RATE;...",
      [policy](const std::string& text) -> std::function<void()> {
        layout::RatePolicy parsed = *policy;
        parsed.parse_rates(text);
        return [policy, parsed] {
          policy->kind = parsed.kind;
          policy->patterns = parsed.patterns;
        };
      },
      [policy] { return policy->rates_text(); });
  declare_first(table, policy);
}

void declare_first(core::OptionTable& table, layout::RatePolicy* policy) {
  table.custom(
      "first", "dense | compressed",
      [policy](const std::string& text) -> std::function<void()> {
        if (text != "dense" && text != "compressed") throw core::UsageError("");
        return [policy, dense = text == "dense"] { policy->first_layer_dense = dense; };
      },
      [policy] { return std::string(policy->first_layer_dense ? "dense" : "compressed"); });
}

}  // namespace scalecom::methods
