#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstring>
#include <span>
#include <vector>

#include "scalecom/layout/layout.h"

/// How torch is used on the CPU. For the files that compute with it, whose headers take half a
/// minute.
namespace train::models {

/// The same result in every run.
inline void be_deterministic() {
  at::globalContext().setDeterministicAlgorithms(true, false);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
}

/// Keeps torch to the calling thread. OpenMP has that number for each thread, so each asks once.
inline void compute_alone() {
  thread_local bool asked = false;
  if (asked) return;
  at::set_num_threads(1);
  asked = true;
}

/// Views of an array that holds these tensors one after the other.
inline std::vector<at::Tensor> views(std::span<const scalecom::layout::Tensor> tensors, float* at) {
  std::vector<at::Tensor> parts;
  for (const scalecom::layout::Tensor& tensor : tensors) {
    parts.push_back(at::from_blob(at, tensor.shape, at::kFloat));
    at += tensor.elements();
  }
  return parts;
}

/// The parts, one after the other, as one array.
inline void copy_flat(const std::vector<at::Tensor>& parts, float* to) {
  for (const at::Tensor& part : parts) {
    const at::Tensor flat = part.contiguous();
    std::memcpy(to, flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.nbytes()));
    to += flat.numel();
  }
}

}  // namespace train::models
