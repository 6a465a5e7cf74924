#include "scalecom/torch/ddp.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/engine.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "scalecom/comm/together.h"
#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/method_state.h"
#include "scalecom/torch/on_stream.h"
#include "scalecom/torch/side_stream.h"

namespace scalecom::torch {
namespace {

using Future = c10::ivalue::Future;

class Hook final : public c10d::CppCommHookInterface<std::shared_ptr<Ddp>> {
 public:
  using CppCommHookInterface::CppCommHookInterface;
  c10::intrusive_ptr<Future> runHook(c10d::GradBucket& bucket) override {
    return state_->reduce(bucket);
  }
  at::Tensor parseHookResult(const c10::IValue& result) override {
    return state_->result_of(result);
  }
};

c10::intrusive_ptr<Future> make_future(const at::Tensor& tensor) {
  std::vector<at::Device> devices;
  if (tensor.is_cuda()) devices.push_back(tensor.device());
  return c10::make_intrusive<Future>(c10::TensorType::get(), devices);
}

// DDP would throw an error of the future itself, at once. As a value it comes to result_of().
void complete_with_error(Future& future, const std::exception_ptr& error) {
  auto failed = c10::make_intrusive<Future>(c10::TensorType::get());
  failed->setError(error);
  future.markCompleted(std::move(failed), std::vector<Future::WeakStorage>{});
}

std::vector<layout::Tensor> tensors_of(const std::vector<Ddp::Parameter>& parameters) {
  std::vector<layout::Tensor> tensors;
  for (const auto& [name, tensor] : parameters) tensors.push_back({name, tensor.sizes().vec()});
  return tensors;
}

// A method may remember more of a parameter than one memory: "NAME/velocity", as long as it likes.
bool has_place_for(const std::vector<layout::Tensor>& tensors, const std::string& memory,
                   std::int64_t elements) {
  const auto find = [&](const std::string& name) {
    return std::find_if(tensors.begin(), tensors.end(),
                        [&](const layout::Tensor& one) { return one.name == name; });
  };
  const auto own = find(memory);
  if (own != tensors.end()) return own->elements() == elements;
  const std::size_t slash = memory.rfind('/');
  return slash != std::string::npos && find(memory.substr(0, slash)) != tensors.end();
}

}  // namespace

Ddp::Ddp(const std::string& spec, const std::vector<Parameter>& parameters,
         std::unique_ptr<comm::Communicator> communicator)
    : communicator_(std::move(communicator)),
      method_(methods::make(spec)),
      rates_(tensors_of(parameters), method_->rate_policy()) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, tensor] = parameters[i];
    addresses_.emplace_back(tensor.getIntrusivePtr());
    if (!by_tensor_.emplace(tensor.unsafeGetTensorImpl(), i).second) {
      throw core::UsageError(core::concat("[torch] parameter '", name, "' stands twice"));
    }
  }
  const bool on_gpu = !parameters.empty() && parameters.front().tensor.is_cuda();
  stream_ = on_gpu ? side_stream(core::Device::cuda(parameters.front().tensor.get_device()))
                   : core::Stream::worker();
  process_ = ::getpid();
}

void Ddp::register_with(c10d::Reducer& reducer, bool finds_unused) {
  const at::Tensor used = finds_unused ? reducer.get_local_used_map_on_device() : at::Tensor();
  // Those that send nothing but the gradient send zeros of a parameter that nobody used.
  const std::string method = method_->spec();
  if (used.defined() && !method.starts_with("dense") && !method.starts_with("half")) {
    used_ = used.detach();  // the same memory, in a tensor that Python has not
  }
  try {
    reducer.register_comm_hook(std::make_unique<Hook>(shared_from_this()));
  } catch (const c10::Error&) {
    throw core::UsageError(
        "[register] this DistributedDataParallel has a communication hook already; it takes one in "
        "its life");
  }
}

std::vector<std::size_t> Ddp::members_of(const c10d::GradBucket& bucket) const {
  std::vector<std::size_t> members;
  for (const at::Tensor& parameter : bucket.getParameters()) {
    const auto found = by_tensor_.find(parameter.unsafeGetTensorImpl());
    if (found == by_tensor_.end()) {
      throw core::UsageError(
          "[torch] DDP brings a gradient of a parameter that the module did not have, or that was "
          "frozen, when the method was registered: freeze parameters before "
          "DistributedDataParallel is made");
    }
    members.push_back(found->second);
  }
  return members;
}

const layout::Layout& Ddp::layout_of(const std::vector<std::size_t>& members) {
  const auto found = layouts_.find(members);
  if (found != layouts_.end()) return found->second;
  std::vector<layout::Tensor> tensors;
  for (const std::size_t member : members) tensors.push_back(rates_.tensors()[member]);
  const layout::RatePlan& plan = rates_.plan(*communicator_);
  return layouts_.emplace(members, plan.bucket(tensors)).first->second;
}

// Tried on a method of its own, which is then made anew: what either refuses changes nothing here.
void Ddp::configure(const std::string& settings) {
  const auto changed = methods::make(method().spec());
  changed->configure(settings);
  rates_.set_policy(methods::make(changed->spec())->rate_policy());
  // Afterwards nothing can be taken back.
  settled().configure(settings);
  layouts_.clear();
}

void Ddp::load(const std::filesystem::path& folder) {
  const methods::Learner learner = method().learner(*communicator_);
  state::Loaded loaded;
  comm::together(*communicator_, [&] {
    loaded = state::load_for(*method_, folder, learner);
    check_places(loaded, folder);
  });
  method_->restore(loaded.step, std::move(loaded.memories));
}

void Ddp::check_places(const state::Loaded& loaded, const std::filesystem::path& folder) const {
  for (const auto& [name, memory] : loaded.memories) {
    if (has_place_for(rates_.tensors(), name, memory.size())) continue;
    throw core::UsageError(core::concat("[state] ", folder.string(), " has a memory of ",
                                        memory.size(), " elements of '", name,
                                        "', which this model has not"));
  }
}

void Ddp::follow_scale(const at::Tensor& scale) {
  const at::Device device = device_of(stream_);
  if (scale.device() != device || scale.scalar_type() != at::kFloat || scale.numel() != 1) {
    throw core::UsageError(core::concat("[torch] the scaler keeps its scale on ",
                                        scale.device().str(), " and the model is on ", device.str(),
                                        ": use torch.amp.GradScaler(\"",
                                        c10::DeviceTypeName(device.type(), true), "\")"));
  }
  scale_ = scale.detach();  // the same memory, in a tensor that Python has not
}

methods::Method& Ddp::settled() {
  wait_for_buckets();
  if (!scale_.defined()) return *method_;
  if (!stream_.device().is_cuda()) {
    method_->settle_scale(scale_.const_data_ptr<float>());
    return *method_;
  }
  wait_for_current(stream_);
  const OnStream on_stream(stream_);
  method_->settle_scale(scale_.const_data_ptr<float>(), stream_);
  return *method_;
}

c10::intrusive_ptr<Future> Ddp::reduce(c10d::GradBucket& bucket) {
  at::Tensor tensor = bucket.getBuffer();
  auto future = make_future(tensor);
  try {
    std::vector<std::size_t> members = members_of(bucket);
    if (used_.defined()) remember_places(bucket, members);
    if (stream_.device().is_cuda()) {
      wait_for_current(stream_);
      const OnStream on_stream(stream_);
      reduce_now(tensor, layout_of(members));
      future->markCompleted(std::move(tensor));
    } else {
      reduce_later(std::move(tensor), std::move(members), future);
    }
  } catch (const std::exception&) {
    complete_with_error(*future, std::current_exception());
  }
  return future;
}

at::Tensor Ddp::result_of(const c10::IValue& result) {
  if (!result.isFuture()) {
    at::Tensor mean = result.toTensor();
    if (used_.defined()) give_to_unused_later(mean);
    return mean;
  }
  wait_for_buckets();
  core::cuda::synchronize(stream_);
  return result.toFuture()->value().toTensor();  // throws
}

void Ddp::remember_places(const c10d::GradBucket& bucket, const std::vector<std::size_t>& members) {
  // Under join() the buffers of a rank that has no more inputs are others in every step, and nobody
  // asks for their results.
  if (bucket.getIndex() == 0) places_.clear();
  std::vector<Place> places;
  const std::vector<at::Tensor> gradients = bucket.getGradients();
  for (std::size_t i = 0; i < members.size(); ++i) {
    places.push_back({members[i], gradients[i].storage_offset(), gradients[i].strides().vec()});
  }
  places_.insert_or_assign(bucket.getBuffer().unsafeGetTensorImpl(), std::move(places));
}

// Which parameters no rank has used DDP knows once it is done with all buckets: what is queued here
// comes after what DDP is about, and on its stream.
void Ddp::give_to_unused_later(const at::Tensor& mean) {
  const auto found = places_.find(mean.unsafeGetTensorImpl());
  if (found == places_.end()) return;
  const c10::impl::VirtualGuardImpl device(mean.device().type());
  ::torch::autograd::Engine::get_default_engine().queue_callback(
      [self = shared_from_this(), mean, places = found->second,
       stream = device.getStream(mean.device())] {
        const c10::StreamGuard on_stream(stream);
        self->give_to_unused(mean, places);
      });
}

void Ddp::give_to_unused(const at::Tensor& mean, const std::vector<Place>& places) const {
  const at::NoGradGuard no_grad;
  const at::Tensor used = used_.to(at::kCPU);
  for (const Place& place : places) {
    if (used.const_data_ptr<int>()[place.member] != 0) continue;
    const at::Tensor parameter(addresses_[place.member].lock());
    if (!parameter.defined()) continue;
    const at::Tensor sent = mean.as_strided(parameter.sizes(), place.strides, place.begin);
    at::Tensor& gradient = parameter.mutable_grad();
    if (gradient.defined()) {
      // It went into the bucket, as that of a parameter that is used does.
      if (!gradient.is_alias_of(mean)) gradient.copy_(sent);
    } else if (sent.any().item<bool>()) {
      gradient = sent.clone();
    }
  }
}

void Ddp::reduce_later(at::Tensor tensor, std::vector<std::size_t> members,
                       c10::intrusive_ptr<Future> future) {
  auto task = [self = shared_from_this(), tensor = std::move(tensor), members = std::move(members),
               future = std::move(future)]() mutable {
    std::exception_ptr failure;
    try {
      self->reduce_now(tensor, self->layout_of(members));
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
    // Before anybody goes on who may end the module, or the process.
    self.reset();
    if (failure) {
      complete_with_error(*future, failure);
    } else {
      future->markCompleted(std::move(tensor));
    }
  };
  static_cast<void>(stream_.run(std::move(task)));
}

void Ddp::wait_for_buckets() const {
  // A process that was forked later has no such thread.
  if (stream_.is_worker() && ::getpid() == process_) stream_.run([] {}).wait();
}

void Ddp::reduce_now(const at::Tensor& tensor, const layout::Layout& layout) {
  const core::Stream stream = tensor.is_cuda() ? stream_ : core::Stream();
  if (scale_.defined() && method_->begins_step(layout)) {
    method_->follow_scale(scale_.const_data_ptr<float>(), stream);
  }
  method_->reduce(buffer_of(tensor), layout, *communicator_, stream);
}

}  // namespace scalecom::torch
