#pragma once

#include <cstdint>
#include <string>

#include "scalecom/core/options.h"
#include "scalecom/layout/rates.h"
#include "scalecom/methods/nonfinite.h"

namespace scalecom::methods::sketched_sgd {

struct Options {
  double rate = 100;  ///< one value in `rate` is kept, of the compressed slices
  std::int64_t rows = 5;
  std::int64_t columns = 0;     ///< of a bucket's sketch; 0: four for every value that is kept
  std::int64_t candidates = 4;  ///< asked for in the second round, for every value that is kept
  double momentum = 0.9;        ///< under 1; 0: none
  std::int64_t seed = 0;        ///< of the hashes
  layout::RatePolicy rates;
  OnNonFinite nonfinite;

  /// UsageError for an unknown key or a value out of range; then nothing has changed.
  void read(const core::OptionString& options);
  std::string text() const;
  static std::string allowed();

 private:
  core::OptionTable table();
};

}  // namespace scalecom::methods::sketched_sgd
