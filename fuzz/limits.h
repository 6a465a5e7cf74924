#pragma once

#include <cstddef>

namespace fuzz {

/// While it lives, one input is read: in no more than a second of this process's own time, however
/// busy the machine is, and with no more than `most` bytes allocated at any one time, as a few
/// bytes of a file must not make its reader take gigabytes. Ends the process where either does not
/// hold. Allocation is watched under AddressSanitizer only.
class Limits {
 public:
  explicit Limits(std::size_t most);
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;
  ~Limits();

 private:
  double begin_;
};

}  // namespace fuzz
