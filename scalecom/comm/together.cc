#include "scalecom/comm/together.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string>

#include "scalecom/core/error.h"

namespace scalecom::comm {
namespace {

struct Outcome {
  enum Kind : std::int32_t { kWell, kUsage, kIo, kCheck, kDevice, kOther };

  Kind kind = kWell;
  std::array<char, 1020> message{};
};

Outcome failure(Outcome::Kind kind, const char* message) {
  Outcome outcome{kind, {}};
  std::memcpy(outcome.message.data(), message,
              std::min(std::strlen(message), outcome.message.size() - 1));
  return outcome;
}

Outcome run(const std::function<void()>& body) {
  try {
    body();
  } catch (const core::PeerError&) {
    throw;
  } catch (const core::UsageError& error) {
    return failure(Outcome::kUsage, error.what());
  } catch (const core::IoError& error) {
    return failure(Outcome::kIo, error.what());
  } catch (const core::CheckError& error) {
    return failure(Outcome::kCheck, error.what());
  } catch (const core::DeviceError& error) {
    return failure(Outcome::kDevice, error.what());
  } catch (const std::exception& error) {
    return failure(Outcome::kOther, error.what());
  }
  return {};
}

void raise(const Outcome& outcome) {
  // It may be a peer's, which need not be one of ours: neither a text that ends nor a known kind.
  const std::string message(outcome.message.data(),
                            strnlen(outcome.message.data(), outcome.message.size()));
  switch (outcome.kind) {
    case Outcome::kWell:
      return;
    case Outcome::kUsage:
      throw core::UsageError(message);
    case Outcome::kIo:
      throw core::IoError(message);
    case Outcome::kCheck:
      throw core::CheckError(message);
    case Outcome::kDevice:
      throw core::DeviceError(message);
    case Outcome::kOther:
      break;
  }
  throw core::Error(message);
}

}  // namespace

double mean_over_ranks(Communicator& communicator, double mine) {
  const std::vector<double> all = gather(communicator, mine);
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

void together(Communicator& communicator, const std::function<void()>& body) {
  const Outcome mine = run(body);
  std::vector<Outcome> all;
  try {
    all = gather(communicator, mine);
  } catch (const core::PeerError&) {
    raise(mine);  // what is known here says more than that others are gone
    throw;
  }
  for (const Outcome& outcome : all) raise(outcome);
}

}  // namespace scalecom::comm
