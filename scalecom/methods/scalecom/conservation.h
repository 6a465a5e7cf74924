#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scalecom/comm/communicator.h"
#include "scalecom/kernels/kernels.h"
#include "scalecom/methods/scalecom/bucket.h"

namespace scalecom::methods::scalecom {

/// check=conserve: a second, slow set of books in double precision. For every compressed tensor,
/// what went in, was sent, decayed and is held; in units of the gradient, so a memory m counts as
/// m / beta. Each step is also checked entry by entry, so that a loss cannot hide in a sum.
class Conservation {
 public:
  /// Before a bucket's first pass: what is there.
  void open(Bucket& bucket, kernels::Filter filter);
  /// After the items were taken and before they are summed: what this rank sends.
  void send(Bucket& bucket);
  /// The rounding of its part of the mean was given back to this rank's memory.
  void give_back(const NarrowMean& mean);
  /// At the end of the bucket's step; `sent` is false where it was taken back. Every rank takes
  /// part, and every rank throws CheckError where one rank's books do not balance.
  void close(Bucket& bucket, const Options& options, bool sent, comm::Communicator& communicator);

  /// The last step's bucket was put back.
  void put_back(Bucket& bucket, kernels::Filter filter);
  /// A tensor's whole memory went out with a dense slice.
  void forget(const std::string& name) { accounts_.erase(name); }
  /// The memories were replaced or rescaled: the books begin anew.
  void reset() { accounts_.clear(); }

  /// What close() sends and receives.
  static comm::Counters cost(int size);

 private:
  struct Account {
    double in = 0;
    double sent = 0;
    double decayed = 0;
    double rounding = 0;  ///< what fp32 arithmetic has added
    double held = 0;
    double scale = 0;  ///< of the numbers above, for what counts as equal
  };
  struct Entry {
    std::vector<float> grad;    // as it went in; 0 where it was refused
    std::vector<float> memory;  // before the step
    std::vector<double> sent;   // 0 where nothing was sent
  };
  struct Verdict;

  std::string check_part(const std::string& name, const Bucket::View& view, std::size_t part,
                         kernels::Filter filter, bool sent);

  std::map<std::string, Account> accounts_;
  std::vector<Entry> entries_;       // of the bucket under way, a part each
  std::vector<double> item_values_;  // what each of its items really gave
};

}  // namespace scalecom::methods::scalecom
