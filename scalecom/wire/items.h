#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// Kept entries that every rank has chosen for itself, as they cross the network:
///     [values of all tensors, fp32 | offsets of each tensor | zeros up to a multiple of 4 bytes]
/// An offset is an entry's place in its tensor, packed as wire/offsets.h does; those of one tensor
/// fill whole bytes. So messages may follow one another in an array of floats.
namespace scalecom::wire {

/// How many entries of a tensor are in a message.
struct Run {
  std::int64_t length = 0;  ///< of the tensor; at least 1
  std::int64_t count = 0;
};

std::int64_t items_bytes(std::span<const Run> runs);

/// `positions` ascend within each tensor; `out` holds items_bytes(runs).
void pack_items(std::span<const Run> runs, const std::uint32_t* positions, const float* values,
                std::span<std::byte> out);

/// The reverse. Returns false, with the items undefined, where the bytes cannot have come from
/// pack_items(): an offset outside its tensor, or offsets that do not ascend.
[[nodiscard]] bool unpack_items(std::span<const Run> runs, std::span<const std::byte> in,
                                std::uint32_t* positions, float* values);

}  // namespace scalecom::wire
