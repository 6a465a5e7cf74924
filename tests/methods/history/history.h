#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

/// Random lives of a method, which can be played again and made shorter.
namespace scalecom::methods::testing {

/// One thing that happens. What it does in detail follows from its own seed, so that it stays the
/// same when others before it are left out.
struct Action {
  enum class Kind : std::uint8_t {
    kStep,       ///< a gradient, in one bucket or several
    kSkipped,    ///< the same, taken back
    kNotFinite,  ///< the same, with a NaN or an infinity somewhere at one rank
    kRestore,    ///< saved, and loaded into another number of ranks
    kRescale,    ///< gradients come in other units from now on
    kOtherBeta,  ///< for methods that have one; the step before can no longer be taken back
    kSave,       ///< a checkpoint
    kFault,      ///< a rank is lost in the middle of a step, and other ones go on from the last
                 ///< checkpoint, or from the start where there is none
  };

  Kind kind = Kind::kStep;
  std::uint32_t seed = 0;
};

using History = std::vector<Action>;

std::ostream& operator<<(std::ostream& out, const Action& action);

History draw_history(std::uint32_t seed, int length);

/// A history that fails too, and of which nothing can be left out any more, one action or several
/// in a row of equal lengths. `fails` is asked a few hundred times at most.
History shortest(History history, const std::function<bool(const History&)>& fails);

}  // namespace scalecom::methods::testing
