#include "scalecom/methods/scalecom/conservation.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"

namespace scalecom::methods::scalecom {
namespace {

constexpr double kUlp = 1.0 / (1 << 23);  // of fp32, relative

double held_by(const kernels::Tensor& tensor, kernels::Filter filter) {
  double held = 0;
  for (std::int64_t i = 0; i < tensor.length; ++i) held += tensor.memory[i];
  return held / filter.beta;
}

// A weight for each item, so that values that changed places do not cancel.
double weight(std::int64_t item) {
  return 0.5 + static_cast<double>(core::mix(static_cast<std::uint64_t>(item)) >> 11) * 0x1p-53;
}

}  // namespace

/// What the ranks tell one another when a bucket closes.
struct Conservation::Verdict {
  double sent = 0;       ///< weighted sum over this rank's items
  double magnitude = 0;  ///< the same of absolute values
  std::array<char, 240> complaint{};
};

void Conservation::open(Bucket& bucket, kernels::Filter filter) {
  const Bucket::View view = bucket.view();
  entries_.assign(view.tensors.size(), {});
  item_values_.assign(static_cast<std::size_t>(bucket.shape().items), 0.0);
  for (std::size_t part = 0; part < entries_.size(); ++part) {
    const kernels::Tensor& tensor = view.tensors[part];
    Entry& entry = entries_[part];
    const auto length = static_cast<std::size_t>(tensor.length);
    entry.memory.assign(tensor.memory, tensor.memory + tensor.length);
    entry.grad.resize(length);
    entry.sent.assign(length, 0.0);
    kernels::table().load(tensor.grad, tensor.dtype, tensor.length, 1.0F, entry.grad.data());
    for (std::size_t i = 0; i < length; ++i) {
      const float kept = std::fma(filter.beta, entry.grad[i], filter.decay * entry.memory[i]);
      if (!std::isfinite(std::fma(1.0F - filter.beta, entry.grad[i], kept))) entry.grad[i] = 0;
    }
  }
}

void Conservation::send(Bucket& bucket) {
  const Bucket::View view = bucket.view();
  item_values_.assign(view.values.begin(), view.values.end());
}

void Conservation::give_back(const NarrowMean& mean) {
  const std::vector<float> rounding = mean.rounding_on_host();
  for (std::size_t i = 0; i < rounding.size(); ++i) {
    item_values_[static_cast<std::size_t>(mean.owned().begin) + i] -= rounding[i];
  }
}

// Looks at every entry of a part and brings its account up to date. Returns a complaint, or "".
std::string Conservation::check_part(const std::string& name, const Bucket::View& view,
                                     std::size_t part, kernels::Filter filter, bool sent) {
  const kernels::Tensor& tensor = view.tensors[part];
  Entry& entry = entries_[part];
  if (sent) {
    for (std::int64_t i = view.first_items[part]; i < view.first_items[part + 1]; ++i) {
      entry.sent[view.positions[i]] = item_values_[static_cast<std::size_t>(i)];
    }
  }
  const double beta = filter.beta;
  const double decay = filter.decay;
  double opening = 0;
  for (const float m : entry.memory) opening += m;
  opening /= beta;
  const auto [found, is_new] = accounts_.try_emplace(name);
  Account& account = found->second;
  if (is_new) {
    account.in = account.held = opening;
  } else if (account.held != opening) {
    return core::concat("the memory of '", name, "' changed between steps, from ", account.held,
                        " to ", opening);
  }
  double held = 0;
  for (std::int64_t i = 0; i < tensor.length; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double kept = beta * entry.grad[at] + decay * entry.memory[at];
    const double expected = kept - beta * entry.sent[at];
    const double actual = tensor.memory[i];
    const double slack = 2 * kUlp *
                             (std::abs(decay * entry.memory[at]) + std::abs(kept) +
                              beta * std::abs(entry.sent[at])) +
                         2 * std::numeric_limits<float>::denorm_min();
    if (!(std::abs(actual - expected) <= slack)) {
      return core::concat("entry ", i, " of '", name, "' holds ", actual, " where ", expected,
                          " is left of memory ", entry.memory[at], " and gradient ", entry.grad[at],
                          " after sending ", entry.sent[at]);
    }
    account.in += entry.grad[at];
    account.sent += entry.sent[at];
    account.decayed += (1 - decay) * entry.memory[at] / beta;
    account.rounding += (actual - expected) / beta;
    account.scale += std::abs(entry.grad[at]) + std::abs(entry.memory[at]) / beta;
    held += actual;
  }
  account.held = held / beta;
  const double missing =
      account.in + account.rounding - account.sent - account.decayed - account.held;
  if (std::abs(missing) > 1e-10 * account.scale) {
    return core::concat("'", name, "' took in ", account.in, ", sent ", account.sent, ", decayed ",
                        account.decayed, " and holds ", account.held, ": ", missing, " is missing");
  }
  return "";
}

void Conservation::close(Bucket& bucket, const Options& options, bool sent,
                         comm::Communicator& communicator) {
  const Bucket::View view = bucket.view();
  Verdict mine;
  for (std::size_t part = 0; part < entries_.size(); ++part) {
    const std::string complaint =
        check_part(bucket.shape().parts[part].name, view, part, options.filter(), sent);
    if (complaint.empty()) continue;
    std::memcpy(mine.complaint.data(), complaint.data(),
                std::min(complaint.size(), mine.complaint.size() - 1));
    break;
  }
  double mean = 0;
  for (std::size_t i = 0; sent && i < item_values_.size(); ++i) {
    const double w = weight(static_cast<std::int64_t>(i));
    mine.sent += w * item_values_[i];
    mine.magnitude += w * std::abs(item_values_[i]);
    mean += w * view.values[i] / options.gain;
  }
  const std::vector<Verdict> all = comm::gather(communicator, mine);
  double total = 0;
  double magnitude = 0;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].complaint[0] != '\0') {
      // A peer's text need not end.
      const std::string_view complaint(
          all[rank].complaint.data(),
          strnlen(all[rank].complaint.data(), all[rank].complaint.size()));
      throw core::CheckError(
          core::concat("[check=conserve] step ", bucket.step(), ", rank ", rank, ": ", complaint));
    }
    total += all[rank].sent;
    magnitude += all[rank].magnitude;
  }
  const double ranks = communicator.size();
  if (!(std::abs(ranks * mean - total) <= kUlp * (ranks + 3) * magnitude)) {
    throw core::CheckError(core::concat("[check=conserve] step ", bucket.step(),
                                        ": the ranks sent ", total, " and ", ranks * mean,
                                        " arrived"));
  }
}

void Conservation::put_back(Bucket& bucket, kernels::Filter filter) {
  const Bucket::View view = bucket.view();
  for (std::size_t part = 0; part < view.tensors.size(); ++part) {
    Account& account = accounts_[bucket.shape().parts[part].name];
    const double held = held_by(view.tensors[part], filter);
    // What comes back is no longer sent. How much that was is what the memory has gained.
    account.sent -= held - account.held;
    account.held = held;
  }
}

comm::Counters Conservation::cost(int size) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Verdict));
  comm::Counters cost;
  cost[comm::Call::kAllGather] = comm::all_gather_traffic(kBytes, kBytes * size, size);
  return cost;
}

}  // namespace scalecom::methods::scalecom
