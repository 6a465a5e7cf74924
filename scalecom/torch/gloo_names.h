// The names of gloo that torch's ProcessGroupGloo.hpp mentions, for torch's wheel has that header
// and gloo itself, but not gloo's headers. CMake gives this file the names of those. Nothing here
// is defined or has a size that counts: torch's header keeps all of gloo behind pointers.
#ifndef SCALECOM_TORCH_GLOO_NAMES_H
#define SCALECOM_TORCH_GLOO_NAMES_H

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace rendezvous {

class Store {
 public:
  virtual ~Store();
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys,
                    const std::chrono::milliseconds& timeout) = 0;
};

}  // namespace rendezvous

namespace transport {

class Device;
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();
};

}  // namespace transport
}  // namespace gloo

#endif
