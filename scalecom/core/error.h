#pragma once

#include <stdexcept>
#include <string>

namespace scalecom::core {

/// Everything this library throws. A message begins with the operation in brackets and says what
/// would be right: "[layout] tensor 'conv1' has a negative size; sizes are 0 or more".
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The caller's mistake: an option, a size, a file that cannot be what was asked for. The object it
/// was thrown from is as it was before the call.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// A peer that is lost or late. The communicator it was thrown from is unusable from then on; a new
/// one, and the last saved state, are the way back.
class PeerError : public Error {
 public:
  using Error::Error;
};

/// A promise of this library that did not hold: check=conserve found gradient missing, or
/// nonfinite=error met a NaN.
class CheckError : public Error {
 public:
  using Error::Error;
};

/// The system refused: a disk that is full, a file that cannot be renamed.
class IoError : public Error {
 public:
  using Error::Error;
};

/// A GPU or its driver refused: too little memory, a kernel that failed.
class DeviceError : public Error {
 public:
  using Error::Error;
};

}  // namespace scalecom::core
