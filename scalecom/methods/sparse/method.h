#pragma once

#include <memory>

#include "scalecom/core/text.h"
#include "scalecom/methods/buckets.h"
#include "scalecom/methods/memory_store.h"
#include "scalecom/methods/method.h"
#include "scalecom/methods/sparse/bucket.h"
#include "scalecom/methods/sparse/options.h"

namespace scalecom::methods::sparse {

/// What the methods have in common whose ranks each send entries of their own choice: buckets by
/// layout, memories by tensor, dense slices beside them, and steps that are refused or taken back.
class SparseMethod : public Method {
 public:
  layout::RatePolicy rate_policy() const override { return options().rates; }
  comm::Counters cost(const layout::Layout& layout, int size, int rank,
                      std::int64_t step) const override;
  bool may_refuse() const override { return options().nonfinite.is_error(); }
  void undo() override;
  void rescale(float factor) override;
  std::vector<NamedMemory> memories() const override { return memories_.list(); }

 protected:
  virtual const Options& options() const = 0;
  virtual std::unique_ptr<Bucket> make_bucket(const layout::Layout& layout,
                                              MemoryStore& memories) const = 0;
  /// What Bucket::exchange() sends and receives in a step that is not of the warm-up.
  virtual comm::Counters exchange_cost(const layout::Layout& layout, int size, int rank,
                                       std::int64_t step) const = 0;
  /// Whether the host looks at a step while it is done, so that it cannot be captured.
  virtual bool host_looks() const { return may_refuse(); }
  /// The bucket of a layout, or null where none was reduced since the last change.
  const Bucket* find_bucket(const layout::Layout& layout) const { return buckets_.find(layout); }
  /// After options have changed: the last step can no longer be taken back.
  void forget_buckets() {
    memories_.forget_aside();
    ahead_.replace({});
    buckets_.clear();
  }

  void begin_step(std::int64_t step) override;
  void prepare_bucket(const FirstBucket& first) override;
  void reduce_bucket(const core::Buffer& grad, const layout::Layout& layout,
                     comm::Communicator& communicator, std::int64_t step,
                     const core::Stream& stream) override;
  std::function<void()> way_back() override;
  void after_replays(std::int64_t steps) override;
  void replace_memories(Memories memories) override;

 private:
  bool warming_up(std::int64_t step) const { return step < options().dense_steps; }
  Bucket& bucket_of(const layout::Layout& layout, std::int64_t step);
  bool fold_memories(Bucket& bucket, int ranks);

  MemoryStore memories_;
  MemoryStore ahead_;  // made in the warm-up for the steps after it
  Buckets<Bucket> buckets_;
};

/// A sparse method whose options are an `OptionsType`: sparse::Options with a kName and a table().
template <typename OptionsType>
class ConfiguredMethod : public SparseMethod {
 public:
  explicit ConfiguredMethod(const core::OptionString& options) { read(options); }

 protected:
  const OptionsType& options() const final { return options_; }
  std::string spec_text() const final {
    OptionsType copy = options_;
    return core::concat(OptionsType::kName, ",", copy.table().text());
  }
  void apply(const std::string& settings) final {
    read(core::OptionString::parse(core::concat(OptionsType::kName, ",", settings)));
    forget_buckets();
  }

 private:
  void read(const core::OptionString& options) {
    options_.table().read(options.settings);
    options_.rates.rate = options_.rate;
  }

  OptionsType options_;
};

}  // namespace scalecom::methods::sparse
