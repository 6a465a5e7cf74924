#include "tests/methods/history/player.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>

#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"
#include "scalecom/layout/rates.h"
#include "scalecom/state/method_state.h"
#include "tests/comm/vanishing.h"
#include "tests/methods/history/ledger.h"
#include "tests/methods/shapes.h"

namespace scalecom::methods::testing {
namespace {

/// A model's tensors in some buckets, the same at every rank.
class Buckets {
 public:
  Buckets(const std::vector<layout::Tensor>& model, const layout::RatePlan& plan,
          std::mt19937& random) {
    std::vector<layout::Tensor> tensors = model;
    std::shuffle(tensors.begin(), tensors.end(), random);
    std::vector<layout::Tensor> bucket;
    for (const layout::Tensor& tensor : tensors) {
      bucket.push_back(tensor);
      if (random() % 3 != 0) continue;
      layouts.push_back(plan.bucket(bucket));
      bucket.clear();
    }
    if (!bucket.empty()) layouts.push_back(plan.bucket(bucket));
  }

  std::vector<layout::Layout> layouts;
};

/// Of what an entry has moved: a few roundings of fp32 a step, and for a product of factors those
/// of the larger numbers that it is a sum of.
double forgiven_by(const std::string& spec) {
  // What its ranks send of an entry may be larger than the entry and than its mean, which the books
  // know: one sends its scale upwards, another downwards.
  if (spec.starts_with("adacomp")) return 1e-5;
  return spec.starts_with("powersgd") ? 1e-4 : 1e-6;
}

class Player {
 public:
  Player(const std::string& spec, Toll toll, std::filesystem::path folder,
         comm::Communicator& world)
      : spec_(spec),
        toll_(toll),
        folder_(std::move(folder)),
        world_(world),
        group_(number_in(spec, "groups=", 1)),
        dense_steps_(spec.starts_with("dgc") ? 0 : number_in(spec, "warmup=", 0)),
        plan_(model_, make(spec)->rate_policy()),
        whole_(plan_.bucket(model_)),
        ledger_(whole_, forgiven_by(spec)) {
    use_ranks(world.size() / group_ * group_);
    method_ = make(spec);
    beta_ = beta_in(method_->spec());
  }

  void take(const Action& action) {
    std::mt19937 random(action.seed);
    switch (action.kind) {
      case Action::Kind::kStep:
        step(random, Fate::kUsed);
        break;
      case Action::Kind::kSkipped:
        step(random, Fate::kSkipped);
        break;
      case Action::Kind::kNotFinite:
        step(random, Fate::kNotFinite);
        break;
      case Action::Kind::kRestore:
        restore(random);
        break;
      case Action::Kind::kRescale: {
        const double factor = random() % 2 == 0 ? 2.0 : 0.5;
        if (ranks_ != nullptr) method_->rescale(static_cast<float>(factor));
        ledger_.rescale(factor);
        break;
      }
      case Action::Kind::kOtherBeta:
        change_beta(random);
        break;
      case Action::Kind::kSave:
        save();
        break;
      case Action::Kind::kFault:
        fault(random);
        break;
    }
    if (ranks_ != nullptr) ledger_.check(*method_, unit(), *ranks_);
  }

  int faults() const { return faults_; }

 private:
  using Vanishing = comm::testing::Vanishing;
  enum class Fate { kUsed, kSkipped, kNotFinite };
  /// A checkpoint's part that is not in its files.
  struct Saved {
    Ledger ledger;
    std::string beta;
  };

  static constexpr std::chrono::milliseconds kFaultDeadline{100};
  static constexpr unsigned kMostCalls = 12;  // some steps end before

  /// As it is written, or "" where the method has none.
  static std::string beta_in(const std::string& spec) {
    const std::size_t at = spec.find("beta=");
    return at == std::string::npos ? "" : spec.substr(at + 5, spec.find(',', at) - at - 5);
  }
  /// What a memory is divided by to be gradient again.
  double unit() const { return beta_.empty() ? 1.0 : static_cast<double>(std::stof(beta_)); }

  /// What `key`, such as "groups=", has in a spec.
  static int number_in(const std::string& spec, std::string_view key, int otherwise) {
    const std::size_t at = spec.find(key);
    return at == std::string::npos ? otherwise : std::stoi(spec.substr(at + key.size()));
  }

  /// The first `count` of the world go on; of the others `ranks_` is null.
  void use_ranks(int count) {
    count_ = count;
    const bool inside = world_.rank() < count;
    ranks_ = std::make_unique<Vanishing>(world_.split(inside ? 0 : 1, world_.rank()));
    if (!inside) ranks_.reset();
  }
  int some_count(std::mt19937& random) const {
    const auto groups = static_cast<unsigned>(world_.size() / group_);
    return (1 + static_cast<int>(random() % groups)) * group_;
  }

  void step(std::mt19937& random, Fate fate) {
    const Buckets buckets(model_, plan_, random);
    const auto spoiled_bucket = random() % buckets.layouts.size();
    const auto spoiled_rank = static_cast<int>(random() % static_cast<unsigned>(count_));
    const float scale = std::ldexp(1.0F, static_cast<int>(random() % 12) - 6);
    for (std::size_t b = 0; b < buckets.layouts.size(); ++b) {
      const layout::Layout& layout = buckets.layouts[b];
      Gradients gradients = normal(count_, layout.elements(), random);
      for (auto& one : gradients) {
        for (float& x : one) x *= scale;
      }
      const std::int64_t bad = fate == Fate::kNotFinite && b == spoiled_bucket
                                   ? static_cast<std::int64_t>(random() % layout.elements())
                                   : -1;
      if (bad >= 0) {
        gradients[static_cast<std::size_t>(spoiled_rank)][static_cast<std::size_t>(bad)] =
            random() % 2 == 0 ? std::nanf("") : -INFINITY;
      }
      if (ranks_ == nullptr) continue;
      std::vector<float> mine = gradients[static_cast<std::size_t>(ranks_->rank())];
      method_->reduce(core::Buffer::of(mine.data(), layout.elements()), layout, *ranks_);
      book(layout, gradients, mine, fate, bad >= 0);
    }
    if (fate == Fate::kSkipped && ranks_ != nullptr) method_->undo();
  }

  /// What a bucket brought and gave. Nothing of a slice that travels dense, as all do in a warm-up,
  /// is kept for later: what of it is not used is the caller's loss, by his own will.
  void book(const layout::Layout& layout, const Gradients& gradients, const std::vector<float>& out,
            Fate fate, bool spoiled) {
    for (const layout::Slice& slice : layout.slices()) {
      const bool keeps = method_->steps() > dense_steps_ && remembers(slice);
      if (!keeps && (spoiled || fate == Fate::kSkipped)) continue;
      for (std::int64_t i = 0; i < slice.length; ++i) {
        const auto at = static_cast<std::size_t>(slice.offset + i);
        const std::int64_t element = place_of(slice.name) + i;
        double sum = 0;
        double magnitude = 0;
        for (int first = 0; first < count_; first += group_) {
          add_group(gradients, first, at, sum, magnitude);
        }
        ledger_.went_in(element, sum / count_, magnitude / count_);
        if (spoiled) {
          if (!std::isnan(out[at])) throw Lost("a bucket that is not finite has a number in it");
        } else if (fate != Fate::kSkipped) {
          ledger_.came_out(element, out[at]);
        }
      }
    }
  }

  /// An entry's values at one group: its mean counts as nothing where one of them is not finite.
  void add_group(const Gradients& gradients, int first, std::size_t at, double& sum,
                 double& magnitude) const {
    double own = 0;
    double moved = 0;
    for (int rank = first; rank < first + group_; ++rank) {
      own += gradients[static_cast<std::size_t>(rank)][at];
      moved += std::abs(gradients[static_cast<std::size_t>(rank)][at]);
    }
    if (!std::isfinite(own)) return;
    sum += own;
    magnitude += moved;
  }

  /// Whether what is not sent of a slice stays in a memory: with a method that has made one.
  bool remembers(const layout::Slice& slice) const {
    for (const NamedMemory& memory : method_->memories()) {
      if (memory.name == slice.name || memory.name.starts_with(slice.name + "[")) return true;
    }
    return !slice.dense();
  }

  std::int64_t place_of(const std::string& name) const {
    for (const layout::Slice& slice : whole_.slices()) {
      if (slice.name == name) return slice.offset;
    }
    return -1;
  }

  void restore(std::mt19937& random) {
    save();
    load(some_count(random));
  }

  /// All that a restart needs, the books with it. Over the last one, of whatever number of ranks.
  void save() {
    world_.barrier();  // nobody is still at the files of another life
    if (ranks_ != nullptr) state::save_method(folder_, *method_, *ranks_);
    // A rank that does not take part has books to catch up with.
    ledger_.follow(0, world_);
    saved_ = Saved{ledger_, beta_};
  }

  /// As after a restart with so many ranks.
  void load(int count) {
    method_.reset();
    ranks_.reset();
    use_ranks(count);
    ledger_ = saved_ ? saved_->ledger : Ledger(whole_, forgiven_by(spec_));
    method_ = make(spec_);
    beta_ = saved_ ? saved_->beta : beta_in(method_->spec());
    if (!beta_.empty()) method_->configure("beta=" + beta_);
    if (saved_ && ranks_ != nullptr) state::load_method(folder_, *method_, *ranks_);
    world_.barrier();
  }

  void fault(std::mt19937& random) {
    const auto lost = static_cast<int>(random() % static_cast<unsigned>(count_));
    const auto calls = static_cast<int>(random() % kMostCalls);
    const int count = some_count(random);
    // Some ranks may do the step all the same, as their part of it needs nothing of the lost one:
    // they start again with the others.
    const int failed = is_step_lost(random, lost, calls) ? 1 : 0;
    const std::vector<int> all = comm::gather(world_, failed);
    if (std::find(all.begin(), all.end(), 1) == all.end()) return;
    ++faults_;
    load(count);
  }

  bool is_step_lost(std::mt19937& random, int lost, int calls) {
    if (ranks_ == nullptr) return false;
    if (toll_ == Toll::kJob) {
      step(random, Fate::kUsed);
      return true;
    }
    const auto usual = ranks_->deadline();
    ranks_->set_deadline(kFaultDeadline);
    if (ranks_->rank() == lost) ranks_->vanish_after(calls);
    try {
      step(random, Fate::kUsed);
    } catch (const comm::testing::Vanished&) {
      return true;
    } catch (const core::PeerError&) {
      return true;
    }
    ranks_->set_deadline(usual);
    ranks_->stay();
    return false;
  }

  void change_beta(std::mt19937& random) {
    if (beta_.empty()) return;
    constexpr const char* kBetas[] = {"1", "0.5", "0.1", "0.3"};
    beta_ = kBetas[random() % 4];
    if (ranks_ == nullptr) return;
    method_->configure("beta=" + beta_);
    if (random() % 2 == 0) method_->undo();  // nothing to take back any more
  }

  std::string spec_;
  const Toll toll_;
  std::filesystem::path folder_;
  comm::Communicator& world_;
  const int group_;        // ranks of one; 1 where there are none
  const int dense_steps_;  // of the warm-up; that of dgc sends less and less
  const std::vector<layout::Tensor> model_ = small_model();
  layout::RatePlan plan_;
  layout::Layout whole_;
  Ledger ledger_;
  int count_ = 0;
  std::unique_ptr<Vanishing> ranks_;
  std::unique_ptr<Method> method_;
  std::string beta_;
  std::optional<Saved> saved_;
  int faults_ = 0;
};

}  // namespace

int play(const std::string& spec, const History& history, Toll toll, const std::string& folder,
         comm::Communicator& world) {
  Player player(spec, toll, folder, world);
  for (const Action& action : history) player.take(action);
  return player.faults();
}

}  // namespace scalecom::methods::testing
