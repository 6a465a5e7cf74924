#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "scalecom/comm/communicator.h"
#include "scalecom/layout/layout.h"
#include "scalecom/methods/method.h"

namespace scalecom::methods::testing {

/// What went in is not what came out and what is left.
class Lost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The books of one run, in double precision, kept by every rank alike: of every element of a
/// model, the mean over ranks of all that went in, all that came out, and all that would pass
/// through its memories. They know nothing of how a method works.
class Ledger {
 public:
  /// `forgiven` is the share of what an element has moved that may be missing. The model outlives
  /// the books.
  Ledger(const layout::Layout& model, double forgiven);

  void went_in(std::int64_t element, double mean, double magnitude);
  void came_out(std::int64_t element, double value);
  void rescale(double factor);
  /// Becomes what rank `root` has: a rank that was not there knows nothing of what happened.
  void follow(int root, comm::Communicator& communicator);

  /// Lost, naming the element that is furthest off, where the books and what is in the memories now
  /// differ by more than rounding. `unit` is what a memory is divided by: the filter's beta. Every
  /// rank calls it.
  void check(const Method& method, double unit, comm::Communicator& communicator);

 private:
  struct Entry {
    double in = 0;
    double out = 0;
    double moved = 0;  // magnitudes, whose rounding is forgiven
  };

  /// The mean over learners of the memories of every element.
  std::vector<double> remembered(const Method& method, comm::Communicator& communicator) const;

  const layout::Layout* model_;
  double forgiven_;
  std::vector<Entry> entries_;
};

}  // namespace scalecom::methods::testing
