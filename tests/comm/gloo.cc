#include "tests/comm/gloo.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <span>

#include "scalecom/comm/hybrid/hybrid.h"
#include "scalecom/comm/mpi/mpi.h"
#include "scalecom/core/text.h"
#include "scalecom/torch/torchrun.h"

namespace scalecom::comm::testing {
namespace {

/// One that nobody uses.
int free_port() {
  const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ::bind(probe, reinterpret_cast<sockaddr*>(&address), length);
  ::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &length);
  ::close(probe);
  return ntohs(address.sin_port);
}

void set_variables() {
  const auto processes = mpi::make_communicator(std::chrono::seconds(60));
  int port = processes->rank() == 0 ? free_port() : 0;
  processes->broadcast(std::as_writable_bytes(std::span(&port, 1)), 0);
  const auto set = [](const char* name, const std::string& value) {
    ::setenv(name, value.c_str(), 1);
  };
  set("RANK", std::to_string(processes->rank()));
  set("WORLD_SIZE", std::to_string(processes->size()));
  set("MASTER_ADDR", "127.0.0.1");
  set("MASTER_PORT", std::to_string(port));
}

torch::Torchrun& launched() {
  static const auto processes = [] {
    set_variables();
    return std::make_unique<torch::Torchrun>(std::chrono::seconds(60));
  }();
  return *processes;
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_gloo_world(int size,
                                                           std::chrono::milliseconds deadline) {
  return hybrid::make_world(launched().open_link(deadline, size), size, deadline);
}

}  // namespace scalecom::comm::testing
