#pragma once

namespace scalecom::methods {

/// One of the learners whose memories together are what is still to be sent: a rank, or a group of
/// ranks that share one memory among them. All have the same number of ranks.
struct Learner {
  int number = 0;
  int learners = 1;
};

}  // namespace scalecom::methods
