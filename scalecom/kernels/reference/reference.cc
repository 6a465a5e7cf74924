#include "scalecom/kernels/reference/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "scalecom/kernels/reference/bins.h"
#include "scalecom/kernels/reference/lowrank.h"
#include "scalecom/kernels/reference/sketch.h"

namespace scalecom::kernels::reference {
namespace {

using core::DType;

struct Float32 {
  using Stored = float;
  static float load(float stored) { return stored; }
  static float store(float value) { return value; }
};

struct Float16 {
  using Stored = std::uint16_t;
  static float load(std::uint16_t stored) { return core::from_float16_bits(stored); }
  static std::uint16_t store(float value) { return core::to_float16_bits(value); }
};

struct BFloat16 {
  using Stored = std::uint16_t;
  static float load(std::uint16_t stored) { return core::from_bfloat16_bits(stored); }
  static std::uint16_t store(float value) { return core::to_bfloat16_bits(value); }
};

// Calls `body` with the gradient's type and its elements.
template <typename Body>
auto with_type(DType dtype, Body body) {
  switch (dtype) {
    case DType::kFloat16:
      return body(Float16());
    case DType::kBFloat16:
      return body(BFloat16());
    case DType::kFloat32:
      break;
  }
  return body(Float32());
}

template <typename Type>
typename Type::Stored* elements(Type, const Tensor& tensor) {
  return static_cast<typename Type::Stored*>(tensor.grad);
}

float filtered(Filter filter, float g, float m) {
  return std::fma(filter.beta, g, filter.decay * m);
}

float to_send(Filter filter, float g, float filtered) {
  return std::fma(1.0F - filter.beta, g, filtered);
}

float settled(Filter filter, float sent, float before) {
  return std::fma(-filter.beta, sent, before);
}

std::uint32_t key_of(float u) {
  return std::bit_cast<std::uint32_t>(u) & 0x7fffffffU;
}

// One entry's first pass: `m` becomes m'. A gradient that makes u not finite becomes 0.
struct Entry {
  Entry(Filter filter, float g, float m)
      : memory(filtered(filter, g, m)), u(to_send(filter, g, memory)), finite(std::isfinite(u)) {
    if (finite) return;
    memory = filtered(filter, 0.0F, m);
    u = to_send(filter, 0.0F, memory);
  }

  float memory;
  float u;
  bool finite;
};

bool accumulate(const Tensor& tensor, Filter filter, std::int64_t begin, std::int64_t end) {
  return with_type(tensor.dtype, [&](auto type) {
    auto* grad = elements(type, tensor);
    bool finite = true;
    for (std::int64_t i = begin; i < end; ++i) {
      const Entry entry(filter, type.load(grad[i]), tensor.memory[i]);
      tensor.memory[i] = entry.memory;
      if (!entry.finite) grad[i] = 0;
      finite = finite && entry.finite;
    }
    return finite;
  });
}

bool lead(const Tensor& tensor, Filter filter, DType values, std::int64_t chunk, std::int64_t first,
          std::int64_t last, Taken out) {
  return with_type(tensor.dtype, [&](auto type) {
    auto* grad = elements(type, tensor);
    bool finite = true;
    for (std::int64_t c = first; c < last; ++c) {
      const std::int64_t begin = c * chunk;
      const std::int64_t end = std::min(begin + chunk, tensor.length);
      std::int64_t best = begin;
      float best_u = 0;
      for (std::int64_t i = begin; i < end; ++i) {
        const Entry entry(filter, type.load(grad[i]), tensor.memory[i]);
        tensor.memory[i] = entry.memory;
        grad[i] = 0;
        finite = finite && entry.finite;
        if (i == begin || key_of(entry.u) > key_of(best_u)) {
          best = i;
          best_u = entry.u;
        }
      }
      out.positions[c] = static_cast<std::uint32_t>(best);
      out.values[c] = core::round_to(values, best_u);
      out.before[c] = tensor.memory[best];
      tensor.memory[best] = settled(filter, out.values[c], out.before[c]);
    }
    return finite;
  });
}

void take(const Tensor& tensor, Filter filter, DType values, std::int64_t count, Taken items) {
  with_type(tensor.dtype, [&](auto type) {
    const auto* grad = elements(type, tensor);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t position = items.positions[i];
      const float before = tensor.memory[position];
      items.before[i] = before;
      items.values[i] = core::round_to(values, to_send(filter, type.load(grad[position]), before));
      tensor.memory[position] = settled(filter, items.values[i], before);
    }
  });
}

void keys(const Tensor& tensor, Filter filter, std::int64_t begin, std::int64_t end,
          std::uint32_t* keys) {
  with_type(tensor.dtype, [&](auto type) {
    const auto* grad = elements(type, tensor);
    for (std::int64_t i = begin; i < end; ++i) {
      keys[i - begin] = key_of(to_send(filter, type.load(grad[i]), tensor.memory[i]));
    }
  });
}

void put(const Tensor& tensor, std::int64_t count, const std::uint32_t* positions,
         const float* values) {
  with_type(tensor.dtype, [&](auto type) {
    auto* grad = elements(type, tensor);
    for (std::int64_t i = 0; i < count; ++i) grad[positions[i]] = type.store(values[i]);
  });
}

void zero_and_put(const Tensor& tensor, std::int64_t begin, std::int64_t end, std::int64_t count,
                  const std::uint32_t* positions, const float* values) {
  with_type(tensor.dtype, [&](auto type) {
    auto* grad = elements(type, tensor);
    for (std::int64_t i = begin; i < end; ++i) grad[i] = 0;
  });
  put(tensor, count, positions, values);
}

bool follow(const Tensor& tensor, Filter filter, DType values, std::int64_t begin, std::int64_t end,
            std::int64_t count, Taken items) {
  const bool finite = accumulate(tensor, filter, begin, end);
  take(tensor, filter, values, count, items);
  zero_and_put(tensor, begin, end, 0, nullptr, nullptr);
  return finite;
}

bool load(const void* grad, DType dtype, std::int64_t count, float factor, float* out) {
  return with_type(dtype, [&](auto type) {
    const auto* stored = static_cast<const typename decltype(type)::Stored*>(grad);
    bool finite = true;
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = type.load(stored[i]) * factor;
      finite = finite && std::isfinite(out[i]);
    }
    return finite;
  });
}

void store(const float* in, std::int64_t count, float factor, void* grad, DType dtype) {
  with_type(dtype, [&](auto type) {
    auto* stored = static_cast<typename decltype(type)::Stored*>(grad);
    for (std::int64_t i = 0; i < count; ++i) stored[i] = type.store(in[i] * factor);
  });
}

void narrow(const float* in, std::int64_t count, DType type, std::uint16_t* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = core::to_bits16(type, core::round_to(type, in[i]));
  }
}

void widen(const std::uint16_t* in, std::int64_t count, DType type, float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = core::from_bits16(type, in[i]);
}

}  // namespace

const Table& table() {
  static constexpr Table kTable{
      .isa = "scalar",
      .accumulate = accumulate,
      .lead = lead,
      .take = take,
      .follow = follow,
      .keys = keys,
      .zero_and_put = zero_and_put,
      .put = put,
      .load = load,
      .store = store,
      .narrow = narrow,
      .widen = widen,
      .low_rank = {accumulate_low_rank, project_low_rank, expand_low_rank},
      .sketch = {find_places},
      .bins = {find_in_bin}};
  return kTable;
}

}  // namespace scalecom::kernels::reference
