#pragma once

#include <cstdint>
#include <string>

#include "scalecom/core/dtype.h"
#include "scalecom/core/options.h"
#include "scalecom/kernels/kernels.h"
#include "scalecom/layout/rates.h"
#include "scalecom/layout/selection.h"
#include "scalecom/methods/nonfinite.h"

namespace scalecom::methods::scalecom {

struct Options {
  /// What becomes of the memory: the method's name, and two of its keys.
  enum class Feedback {
    kFilter,    ///< scalecom: the low-pass filter, `beta` and `decay`
    kWeighted,  ///< weighted: u = a*grad + b*m, m = u - sent
  };
  enum Leaders { kCyclic, kSharded };
  enum Check { kNone, kConserve };

  double rate = 100;  ///< one value in `rate` is sent, of the compressed slices
  double beta = 0.1;  ///< the filter; 1 is plain error feedback
  double decay = 1;   ///< of the memory, a step
  double gain = 1;    ///< of what is sent, over what the kernels take out
  layout::Selection select;
  int leaders = kCyclic;
  int values = 0;           ///< fp32, bf16, fp16: what a value is on the wire
  std::int64_t warmup = 0;  ///< steps that travel dense
  layout::RatePolicy rates;
  std::int64_t seed = 0;  ///< of select=random
  OnNonFinite nonfinite;
  int check = kNone;

  /// A weighted u is a*(grad + b*m/a): with m/a as the memory that is kept, `b` is the decay of a
  /// filter of beta 1, and `a` the gain.
  explicit Options(Feedback feedback = Feedback::kFilter);

  /// UsageError for an unknown key, a value out of range, or two that do not go together; then
  /// nothing has changed.
  void read(const core::OptionString& options);
  std::string text() const;
  static std::string allowed(Feedback feedback);
  const char* name() const;

  core::DType value_type() const;
  kernels::Filter filter() const { return {static_cast<float>(beta), static_cast<float>(decay)}; }
  bool sends_offsets() const { return select.kind != layout::Selection::Kind::kRandom; }

  /// What a kept memory is in gradients that are sent: m over this.
  float memory_unit() const { return static_cast<float>(beta / gain); }

 private:
  core::OptionTable table();

  Feedback feedback_;
};

}  // namespace scalecom::methods::scalecom
