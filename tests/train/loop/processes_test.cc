#include "train/loop/processes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"

namespace train::loop {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;

// MPI runs once in a process, so that this is one test. Alone, or the second of two processes is
// another program, of which the first hears sizes that no text has.
TEST(Processes, CompareTheirSettings) {
  Processes processes(std::chrono::seconds(60));
  processes.compare(R"({"rate": 100})");
  if (processes.size() == 1) return;
  for (const std::int64_t size :
       {std::numeric_limits<std::int64_t>::max(), std::int64_t{1} << 40, std::int64_t{-1}}) {
    if (processes.first()) {
      EXPECT_THROW(processes.compare("{}"), core::PeerError) << size;
    } else {
      comm::gather(processes.between(), size);
    }
  }
  if (processes.first()) {
    EXPECT_THROW(processes.compare(R"({"rate": 100})"), core::UsageError);
  } else {
    EXPECT_THROW(processes.compare(R"({"rate": 50})"), core::UsageError);
  }
}

}  // namespace
}  // namespace train::loop
