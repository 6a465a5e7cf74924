#pragma once

#include <ATen/core/Tensor.h>
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <vector>

#include "scalecom/comm/communicator.h"
#include "scalecom/layout/layout.h"
#include "scalecom/methods/method.h"
#include "scalecom/state/memories.h"
#include "scalecom/torch/model_rates.h"

namespace scalecom::torch {

/// A method at work in one DistributedDataParallel module: its buckets become layouts by the names
/// of their parameters, whatever the buckets are and however often they are cut anew.
///
/// On the CPU a worker thread reduces bucket after bucket, in the order in which DDP brings them,
/// which is the same on all ranks; DDP's own thread, which holds a lock, never waits. On a GPU all
/// is put on a stream of its own. The other calls come between steps, and wait for the worker.
///
/// The worker may end a bucket, and drop the last of this, while Python's interpreter shuts down. A
/// thread that then takes the interpreter's lock, as it must to drop a tensor that Python knows, is
/// ended, and takes the process with it. So neither this nor a bucket under way holds such a
/// tensor: parameters are known by their addresses.
class Ddp : public std::enable_shared_from_this<Ddp> {
 public:
  struct Parameter {
    std::string name;
    at::Tensor tensor;
  };

  /// The model's parameters, in its own order; UsageError for a name or a tensor that stands twice,
  /// and for what methods::make refuses.
  Ddp(const std::string& spec, const std::vector<Parameter>& parameters,
      std::unique_ptr<comm::Communicator> communicator);

  /// Becomes the reducer's hook. core::UsageError where it has one already.
  ///
  /// Where DDP looks for parameters that a step does not use, it leaves the gradients of those
  /// alone that no rank used. What was sent of their memories comes to them all the same, or it
  /// would be lost.
  void register_with(c10d::Reducer& reducer, bool finds_unused);

  /// One bucket. The future's value is for result_of().
  c10::intrusive_ptr<c10::ivalue::Future> reduce(c10d::GradBucket& bucket);

  /// A bucket's mean; or its error, thrown once no bucket is under way: whoever catches it may go
  /// on with another backward pass, which writes into the same buckets. DDP asks when it has
  /// brought all buckets of a pass. Which is the last cannot be told from a bucket, as DDP may skip
  /// those that have no gradients.
  at::Tensor result_of(const c10::IValue& result);

  /// FLOPs per gradient by parameter, for rates=flops and rates=paper: before the first bucket. The
  /// first rank's are everybody's.
  void set_flops(const std::vector<double>& flops_per_gradient) {
    rates_.set_flops(flops_per_gradient);
  }
  bool wants_flops() const { return rates_.wants_flops(); }

  /// A loss scaler's scale, a tensor of one float that it changes in place: from now on the memory
  /// follows it. A scale that has become smaller since the last step means that the scaler skipped
  /// that step, which is then taken back over all its buckets.
  void follow_scale(const at::Tensor& scale);

  /// The method with its memories in the scaler's units of now, and without a step that the scaler
  /// has skipped: to be looked at, or saved.
  methods::Method& settled();

  /// Other options of the method from now on, and other rates where they follow from them.
  /// UsageError for what the constructor would refuse, and for rates by FLOPs where it was given
  /// others; then nothing has changed.
  void configure(const std::string& settings);

  /// Takes up what state::save_method wrote of any number of ranks. Every rank calls it. UsageError
  /// as of state::load_method, and for memories that are not of this model; then every rank throws
  /// and nothing has changed.
  void load(const std::filesystem::path& folder);

  /// Once no bucket is under way. A backward pass that ends early, by an error that is not a
  /// bucket's, leaves those it has brought to the worker, which may wait for its peers.
  methods::Method& method() {
    wait_for_buckets();
    return *method_;
  }
  comm::Communicator& communicator() {
    wait_for_buckets();
    return *communicator_;
  }
  /// The rate of each parameter; 1 travels dense. Only from the first bucket on with rates by
  /// FLOPs.
  std::vector<double> rates() {
    wait_for_buckets();
    return rates_.rates();
  }

 private:
  /// The places of a bucket's parameters among the model's.
  std::vector<std::size_t> members_of(const c10d::GradBucket& bucket) const;
  const layout::Layout& layout_of(const std::vector<std::size_t>& members);
  /// In the worker's thread.
  void reduce_later(at::Tensor tensor, std::vector<std::size_t> members,
                    c10::intrusive_ptr<c10::ivalue::Future> future);
  void reduce_now(const at::Tensor& tensor, const layout::Layout& layout);
  void wait_for_buckets() const;

  /// Where a parameter's gradient lies in a bucket.
  struct Place {
    std::size_t member;
    std::int64_t begin;
    std::vector<std::int64_t> strides;
  };
  void remember_places(const c10d::GradBucket& bucket, const std::vector<std::size_t>& members);
  void give_to_unused_later(const at::Tensor& mean);
  void give_to_unused(const at::Tensor& mean, const std::vector<Place>& places) const;
  /// UsageError where a memory belongs to no parameter of this model.
  void check_places(const state::Loaded& loaded, const std::filesystem::path& folder) const;

  /// Does not keep a tensor, but keeps its address from being given to another.
  using Address = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

  std::vector<Address> addresses_;  // of the parameters
  std::map<const c10::TensorImpl*, std::size_t> by_tensor_;
  std::unique_ptr<comm::Communicator> communicator_;
  std::unique_ptr<methods::Method> method_;
  ModelRates rates_;
  std::map<std::vector<std::size_t>, layout::Layout> layouts_;  // by the parameters of a bucket
  core::Stream stream_;                                         // a worker's, or a GPU's
  pid_t process_ = 0;                                           // in which the worker is
  at::Tensor scale_;                                            // the scaler's memory
  at::Tensor used_;  // DDP's: by parameter, the ranks that used it; undefined where nobody looks
  std::map<const c10::TensorImpl*, std::vector<Place>> places_;  // by the bucket's buffer
};

}  // namespace scalecom::torch
