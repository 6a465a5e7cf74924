#pragma once

#include <span>

#include "scalecom/core/aligned_array.h"
#include "scalecom/core/stream.h"

namespace train::machine {

/// An array of the stream's device on the host, with all that is before it on the stream; and back.
/// Both return when it is done.
scalecom::core::AlignedArray<float> to_host(std::span<const float> values,
                                            const scalecom::core::Stream& stream);
void from_host(std::span<const float> host, std::span<float> values,
               const scalecom::core::Stream& stream);

}  // namespace train::machine
