#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "scalecom/comm/communicator.h"
#include "scalecom/layout/layout.h"
#include "scalecom/methods/method.h"
#include "scalecom/torch/model_rates.h"

namespace scalecom::torch {

/// A method at work between the nodes of a model that FSDP2 shards inside them. FSDP2 brings, of
/// one module after the other, this rank's shard of the gradients, averaged inside the node; the
/// communicator joins the ranks that hold the same shards at all nodes. So a node is one learner,
/// and each of its ranks keeps the memories of its own shards.
class Fsdp {
 public:
  /// A parameter, and this rank's shard of it: rows of its first dimension, so elements in a row.
  struct Parameter {
    std::string name;
    std::vector<std::int64_t> shape;  ///< of the whole
    std::int64_t first = 0;           ///< of its elements that are this rank's
    std::int64_t length = 0;
    std::int64_t room = 0;  ///< what FSDP2 keeps for the shard: `length`, and zeros to the longest
  };

  /// The trained parameters in the model's order, and by module those whose shards, in this order,
  /// FSDP2 brings as one. UsageError for what methods::make refuses, and for a method that does not
  /// let tensors be divided among ranks.
  Fsdp(const std::string& spec, std::vector<Parameter> parameters,
       const std::vector<std::vector<std::size_t>>& modules,
       std::unique_ptr<comm::Communicator> communicator);

  /// Throws what the constructor would, for a caller that has no communicator yet. Only names and
  /// shapes count of the parameters.
  static void check(const std::string& spec, const std::vector<Parameter>& parameters);

  /// A module's gradients, flat: in, this rank's shard averaged inside the node; out, in the same
  /// place, its mean over nodes. On a GPU all of it is put on torch's current stream.
  void reduce(std::size_t module, const at::Tensor& shard);

  ModelRates& rates() { return rates_; }
  /// Other options of the method from now on, and other rates where they follow from them.
  /// UsageError for what the constructor would refuse, and for rates by FLOPs where it was given
  /// others; then nothing has changed.
  void configure(const std::string& settings);

  methods::Method& method() { return *method_; }
  comm::Communicator& communicator() { return *communicator_; }

  /// This rank's file of a set of `world` that belongs to all ranks of all nodes; see
  /// state/memories.h.
  void save(const std::filesystem::path& folder, int rank, int world, std::int64_t number) const;
  /// What such a set, of any number of nodes and shards, has for this rank: to be restored once
  /// every rank has read its own.
  struct Loaded {
    std::int64_t steps = 0;
    methods::Memories memories;
  };
  Loaded load(const std::filesystem::path& folder) const;

 private:
  /// What FSDP2 brings of a module.
  struct Module {
    std::vector<std::size_t> parameters;  // of which this rank has elements
    std::vector<std::int64_t> begins;     // of their shards
    std::int64_t room = 0;
    bool in_a_row = true;  // whether no padding lies between shards
    layout::Layout layout = {};
    bool laid_out = false;
  };

  Module& laid_out(std::size_t module);
  void reduce_row(const at::Tensor& row, const Module& module);

  std::unique_ptr<comm::Communicator> communicator_;
  std::unique_ptr<methods::Method> method_;
  std::vector<Parameter> parameters_;
  ModelRates rates_;
  std::vector<Module> modules_;
};

}  // namespace scalecom::torch
