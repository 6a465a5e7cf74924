#include "tests/methods/history/ledger.h"

#include <cmath>

#include "scalecom/comm/together.h"
#include "scalecom/core/text.h"

namespace scalecom::methods::testing {
namespace {

/// Where a memory's elements begin in the model, or -1 where it is no error feedback of a tensor:
/// "fc", or of a part "fc[200:400]".
std::int64_t place_of(const std::string& name, const layout::Layout& model) {
  const std::size_t bracket = name.rfind('[');
  const std::string tensor = name.substr(0, bracket);
  const std::int64_t first =
      bracket == std::string::npos ? 0 : std::stoll(name.substr(bracket + 1));
  for (const layout::Slice& slice : model.slices()) {
    if (slice.name == tensor) return slice.offset + first;
  }
  return -1;
}

}  // namespace

Ledger::Ledger(const layout::Layout& model, double forgiven)
    : model_(&model), forgiven_(forgiven), entries_(static_cast<std::size_t>(model.elements())) {}

void Ledger::went_in(std::int64_t element, double mean, double magnitude) {
  Entry& entry = entries_[static_cast<std::size_t>(element)];
  entry.in += mean;
  entry.moved += magnitude;
}

void Ledger::came_out(std::int64_t element, double value) {
  Entry& entry = entries_[static_cast<std::size_t>(element)];
  entry.out += value;
  entry.moved += std::abs(value);
}

void Ledger::rescale(double factor) {
  for (Entry& entry : entries_) {
    entry.in *= factor;
    entry.out *= factor;
    entry.moved *= factor;
  }
}

void Ledger::follow(int root, comm::Communicator& communicator) {
  communicator.broadcast(std::as_writable_bytes(std::span(entries_)), root);
}

std::vector<double> Ledger::remembered(const Method& method,
                                       comm::Communicator& communicator) const {
  // Of an element that is not here, NaN.
  const auto elements = entries_.size();
  std::vector<double> own(elements, std::nan(""));
  for (const NamedMemory& memory : method.memories()) {
    const std::int64_t place = place_of(memory.name, *model_);
    if (place < 0) continue;
    for (std::size_t i = 0; i < memory.values.size(); ++i) {
      own[static_cast<std::size_t>(place) + i] = static_cast<double>(memory.values[i]);
    }
  }
  std::vector<double> all(static_cast<std::size_t>(communicator.size()) * elements);
  communicator.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
  const auto [number, learners] = method.learner(communicator);
  const std::vector<int> learner_of = comm::gather(communicator, number);

  // The ranks of a learner divide its memories, or, when they have just been loaded, all have them.
  std::vector<double> mean(elements, 0.0);
  for (int learner = 0; learner < learners; ++learner) {
    for (std::size_t i = 0; i < elements; ++i) {
      double sum = 0;
      int holders = 0;
      for (std::size_t rank = 0; rank < learner_of.size(); ++rank) {
        const double value = all[rank * elements + i];
        if (learner_of[rank] != learner || std::isnan(value)) continue;
        sum += value;
        ++holders;
      }
      if (holders > 0) mean[i] += sum / holders / learners;
    }
  }
  return mean;
}

void Ledger::check(const Method& method, double unit, comm::Communicator& communicator) {
  const std::vector<double> mean = remembered(method, communicator);
  double furthest = 1;  // in units of what is forgiven
  std::string finding;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    const double left = mean[i] / unit;
    entry.moved += std::abs(left);
    const double off = std::abs(entry.in - entry.out - left) / (forgiven_ * entry.moved + 1e-30);
    if (!(off > furthest)) continue;
    furthest = off;
    finding = core::concat("element ", i, ": ", entry.in, " went in, ", entry.out, " came out and ",
                           left, " is left, ", furthest, " times further off than is forgiven");
  }
  if (!finding.empty()) throw Lost(finding);
}

}  // namespace scalecom::methods::testing
