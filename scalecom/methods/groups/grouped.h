#pragma once

#include <functional>
#include <memory>
#include <string>

#include "scalecom/methods/method.h"

namespace scalecom::methods::groups {

/// "8" or "node", as in groups=8 and groups=node: ranks in a row, or those of one host.
struct Grouping {
  int size = 0;  ///< 0: by host

  /// UsageError for anything else.
  static Grouping parse(const std::string& text);
  std::string text() const;
};

/// A method between groups of ranks: the gradient is averaged inside each group, whose members then
/// each bring a share of it to the method, together with those who hold the same share in the other
/// groups, and the means are gathered inside the group again. So a group is one learner: only its
/// learner's traffic crosses between groups, and each member keeps its share of the memory.
///
/// Every rank gets the same bits; all NaN where any rank's gradient is not finite. Where the method
/// refuses a share (nonfinite=error, check=conserve), every rank throws CheckError, whichever share
/// it holds; what other shares have sent by then comes back with undo().
///
/// `inner` is the method, and must share one set among its ranks. The communicator outlives this:
/// parts of it are kept.
std::unique_ptr<Method> make(std::unique_ptr<Method> inner, const Grouping& grouping);

}  // namespace scalecom::methods::groups
