#pragma once

#include <cstdint>
#include <string>

#include "scalecom/core/dtype.h"
#include "scalecom/core/options.h"
#include "scalecom/kernels/kernels.h"
#include "scalecom/layout/rates.h"
#include "scalecom/layout/selection.h"

namespace scalecom::methods::scalecom {

struct Options {
  enum Leaders { kCyclic, kSharded };
  enum OnNonFinite { kNan, kError };
  enum Check { kNone, kConserve };

  double rate = 100;  ///< one value in `rate` is sent, of the compressed slices
  double beta = 0.1;  ///< the filter; 1 is plain error feedback
  double decay = 1;   ///< of the memory, a step
  layout::Selection select;
  int leaders = kCyclic;
  int values = 0;           ///< fp32, bf16, fp16: what a value is on the wire
  std::int64_t warmup = 0;  ///< steps that travel dense
  layout::RatePolicy rates;
  std::int64_t seed = 0;  ///< of select=random
  int nonfinite = kNan;   ///< what a NaN or Inf anywhere does to its bucket, at every rank
  int check = kNone;

  /// UsageError for an unknown key, a value out of range, or two that do not go together; then
  /// nothing has changed.
  void read(const core::OptionString& options);
  std::string text() const;
  static std::string allowed();

  core::DType value_type() const;
  kernels::Filter filter() const { return {static_cast<float>(beta), static_cast<float>(decay)}; }
  bool sends_offsets() const { return select.kind != layout::Selection::Kind::kRandom; }

 private:
  core::OptionTable table();
};

}  // namespace scalecom::methods::scalecom
