#pragma once

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "scalecom/core/device.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/layout/layout.h"

/// How torch is used on a GPU. For the files that compute with it, whose headers take half a
/// minute.
namespace train::models::cuda {

/// Torch's failures as this project's.
template <typename Body>
auto translated(scalecom::core::Device device, const Body& body) {
  try {
    return body();
  } catch (const c10::OutOfMemoryError& error) {
    // "Tried to allocate 2.00 GiB. GPU 0 has a total capacity of ... is free." and much advice.
    std::string text = error.what_without_backtrace();
    const std::size_t advice = text.find(". Process ");
    if (advice != std::string::npos) text.resize(advice);
    throw scalecom::core::DeviceError(
        scalecom::core::concat("[train] ", scalecom::core::to_string(device), ": ", text,
                               "; fewer --threads or a smaller --batch need less"));
  } catch (const c10::Error& error) {
    throw scalecom::core::DeviceError(scalecom::core::concat(
        "[train] ", scalecom::core::to_string(device), ": ", error.what_without_backtrace()));
  }
}

inline at::TensorOptions on(scalecom::core::Device device) {
  return at::TensorOptions(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device.index)));
}

/// An array of the device as a tensor that shares its memory.
inline at::Tensor view(scalecom::core::Device device, float* data, at::IntArrayRef shape,
                       at::IntArrayRef strides) {
  const at::TensorOptions options = on(device).dtype(at::kFloat);
  return at::for_blob(data, shape)
      .strides(strides)
      .options(options)
      .target_device(options.device())
      .make_tensor();
}

/// Views of an array that holds these tensors one after the other, in its last dimension.
inline std::vector<at::Tensor> parts_of(std::span<const scalecom::layout::Tensor> tensors,
                                        const at::Tensor& flat) {
  std::vector<at::Tensor> parts;
  std::int64_t at = 0;
  for (const scalecom::layout::Tensor& tensor : tensors) {
    parts.push_back(flat.narrow(-1, at, tensor.elements()));
    at += tensor.elements();
  }
  return parts;
}

constexpr int kWarmUps = 3;  // in which libraries take what they need, before a capture

/// The same result in every run.
inline void be_deterministic() {
  at::globalContext().lazyInitDevice(at::kCUDA);
  // What cuBLAS asks for; it is looked at when the first product is computed.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  at::globalContext().setDeterministicAlgorithms(true, false);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
}

}  // namespace train::models::cuda
