#include "scalecom/torch/fsdp.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/method_state.h"
#include "scalecom/torch/on_stream.h"
#include "scalecom/torch/side_stream.h"

namespace scalecom::torch {
namespace {

std::unique_ptr<methods::Method> make_method(const std::string& spec) {
  if (methods::without_groups(spec) != spec) {
    throw core::UsageError(
        "[fsdp] groups= divides ranks that FSDP2 has divided already: a node is a group here");
  }
  auto method = methods::make(spec);
  if (!method->divides()) {
    throw core::UsageError(core::concat("[fsdp] '", method->spec(),
                                        "' works on whole tensors, which FSDP2 divides; allowed: "
                                        "dense, half, and scalecom or weighted with select=chunk, "
                                        "chunk:C or random"));
  }
  return method;
}

std::vector<layout::Tensor> tensors_of(const std::vector<Fsdp::Parameter>& parameters) {
  std::vector<layout::Tensor> tensors;
  for (const auto& parameter : parameters) tensors.push_back({parameter.name, parameter.shape});
  return tensors;
}

}  // namespace

Fsdp::Fsdp(const std::string& spec, std::vector<Parameter> parameters,
           const std::vector<std::vector<std::size_t>>& modules,
           std::unique_ptr<comm::Communicator> communicator)
    : communicator_(std::move(communicator)),
      method_(make_method(spec)),
      parameters_(std::move(parameters)),
      rates_(tensors_of(parameters_), method_->rate_policy()) {
  for (const auto& members : modules) {
    Module module;
    std::int64_t end = 0;  // of the last shard, without its padding
    for (const std::size_t member : members) {
      const Parameter& parameter = parameters_.at(member);
      if (parameter.length > 0) {
        if (!module.parameters.empty() && module.room != end) module.in_a_row = false;
        module.parameters.push_back(member);
        module.begins.push_back(module.room);
        end = module.room + parameter.length;
      }
      module.room += parameter.room;
    }
    modules_.push_back(std::move(module));
  }
}

void Fsdp::check(const std::string& spec, const std::vector<Parameter>& parameters) {
  static_cast<void>(ModelRates(tensors_of(parameters), make_method(spec)->rate_policy()));
}

Fsdp::Module& Fsdp::laid_out(std::size_t index) {
  Module& module = modules_.at(index);
  if (module.laid_out) return module;
  const layout::RatePlan& plan = rates_.plan(*communicator_);
  std::vector<layout::Slice> slices;
  std::int64_t offset = 0;
  for (const std::size_t member : module.parameters) {
    const Parameter& one = parameters_[member];
    slices.push_back({one.name, offset, one.length, plan.rate_of(one.name), one.shape, one.first});
    offset += one.length;
  }
  module.layout = layout::Layout(std::move(slices));
  module.laid_out = true;
  return module;
}

void Fsdp::reduce(std::size_t index, const at::Tensor& shard) {
  const Module& module = laid_out(index);
  if (shard.numel() != module.room) {
    throw core::UsageError(core::concat(
        "[fsdp] FSDP2 brings ", shard.numel(), " elements of gradients, and the parameters ",
        "trained when the method was registered have ", module.room,
        ": freeze parameters before, and have every parameter take part in every step"));
  }
  if (module.layout.elements() == 0) return;  // nor has any other node's rank in this place
  if (module.in_a_row) {
    const std::int64_t begin = module.begins.front();
    reduce_row(shard.narrow(0, begin, module.layout.elements()), module);
    return;
  }
  // Padding is not sent: what lies between it is packed.
  std::vector<at::Tensor> places;
  const auto slices = module.layout.slices();
  for (std::size_t i = 0; i < slices.size(); ++i) {
    places.push_back(shard.narrow(0, module.begins[i], slices[i].length));
  }
  const at::Tensor row = at::cat(places);
  reduce_row(row, module);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    places[i].copy_(row.narrow(0, slices[i].offset, slices[i].length));
  }
}

void Fsdp::reduce_row(const at::Tensor& row, const Module& module) {
  const core::Buffer buffer = buffer_of(row);
  const core::Stream stream =
      buffer.device.is_cuda() ? current_stream(buffer.device) : core::Stream();
  method_->reduce(buffer, module.layout, *communicator_, stream);
}

// Tried on a method of its own, which is then made anew: what either refuses changes nothing here.
void Fsdp::configure(const std::string& settings) {
  const auto changed = methods::make(method_->spec());
  changed->configure(settings);
  rates_.set_policy(make_method(changed->spec())->rate_policy());
  method_->configure(settings);
  for (Module& module : modules_) module.laid_out = false;
}

void Fsdp::save(const std::filesystem::path& folder, int rank, int world,
                std::int64_t number) const {
  state::save_method(folder, *method_, rank, world, {communicator_->rank(), communicator_->size()},
                     number);
}

// A set gives whole tensors, of which this rank keeps its shards.
Fsdp::Loaded Fsdp::load(const std::filesystem::path& folder) const {
  const auto whole = methods::make(method_->spec());
  state::load_method(folder, *whole, {communicator_->rank(), communicator_->size()});
  Loaded loaded{whole->steps(), {}};
  for (const methods::NamedMemory& memory : whole->memories()) {
    const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                    [&](const Parameter& one) { return one.name == memory.name; });
    const auto elements = static_cast<std::int64_t>(memory.values.size());
    if (found == parameters_.end() ||
        layout::Tensor{found->name, found->shape}.elements() != elements) {
      throw core::UsageError(core::concat("[state] ", folder.string(), " has a memory of ",
                                          elements, " elements of '", memory.name,
                                          "', which this model has not"));
    }
    if (found->length == 0) continue;
    core::AlignedArray<float> part(found->length);
    std::copy_n(memory.values.data() + found->first, found->length, part.begin());
    const layout::Slice slice{found->name, 0, found->length, 1, found->shape, found->first};
    loaded.memories.emplace(slice.key(), std::move(part));
  }
  return loaded;
}

}  // namespace scalecom::torch
