#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scalecom/layout/layout.h"
#include "train/data/samples.h"
#include "train/models/parameters.h"

namespace train::models {

using data::Shape;

/// What a network for telling classes apart is: its tensors, its first weights and how it computes.
/// No torch type shows, so that whoever makes one need not compile against torch.
///
/// Weights of layers have the outputs' index the fastest: (height, width, inputs, outputs) or
/// (inputs, outputs). A chunk of them is then about one input, and the largest of it goes to the
/// output that needs it most; the other way round a chunk may lie in an output that is switched
/// off.
class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Shape& input() const { return input_; }
  std::span<const scalecom::layout::Tensor> tensors() const { return parameters_.tensors(); }
  std::int64_t elements() const { return parameters_.elements(); }

  /// What evaluation needs besides the weights: the running mean and variance of what batch norm
  /// sees. Training computes with those of the mini-batch.
  std::span<const scalecom::layout::Tensor> figures() const { return figures_; }
  std::int64_t figure_elements() const;

  /// He's uniform initialisation, whose variance a ReLU keeps: a function of the seed, the tensors'
  /// names and their shapes.
  void initialise(std::uint64_t seed, std::span<float> weights) const {
    parameters_.initialise(seed, weights);
  }
  void initialise_figures(std::span<float> figures) const;

  /// Whether the mini-batches of several learners can go through it at once.
  virtual bool takes_learners() const { return false; }

  struct Pass;  // with torch's types: pass.h
  virtual void forward(Pass& pass) const = 0;

 protected:
  /// `batch` is a learner's mini-batch, for the tensors' FLOPs.
  Model(const Shape& input, std::int64_t batch) : input_(input), batch_(batch) {}

  /// The tensors of a layer, in the order in which forward() takes them. `positions` are the places
  /// of a sample at which the layer computes its outputs.
  void add_convolution(const std::string& name, std::int64_t kernel, std::int64_t inputs,
                       std::int64_t outputs, std::int64_t positions);
  void add_linear(const std::string& name, std::int64_t inputs, std::int64_t outputs);
  void add_bias(const std::string& name, std::int64_t outputs, std::int64_t positions);
  /// NAME.scale, which begins with `scale`, and NAME.bias; and the figures NAME.mean and
  /// NAME.variance.
  void add_batch_norm(const std::string& name, std::int64_t channels, float scale = 1);

 private:
  void add(std::string name, std::vector<std::int64_t> shape, std::int64_t positions, float first);

  Shape input_;
  std::int64_t batch_;
  Parameters parameters_;
  std::vector<scalecom::layout::Tensor> figures_;
};

}  // namespace train::models
