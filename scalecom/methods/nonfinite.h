#pragma once

#include <cstdint>
#include <string>

#include "scalecom/core/options.h"

namespace scalecom::methods {

/// The option `nonfinite`: what a NaN or Inf anywhere does to its bucket, at every rank.
class OnNonFinite {
 public:
  void declare(core::OptionTable& table) { table.choice("nonfinite", &choice_, {"nan", "error"}); }

  /// Whether a bucket that comes out NaN is an error besides.
  bool is_error() const { return choice_ != 0; }

  /// For a step that came out NaN: core::CheckError where that is an error. `method` is how the
  /// message begins.
  void refuse(const std::string& method, std::int64_t step) const;

 private:
  int choice_ = 0;  // nan, error
};

}  // namespace scalecom::methods
