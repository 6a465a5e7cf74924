#pragma once

#include <memory>
#include <string>

#include "scalecom/core/options.h"
#include "scalecom/methods/method.h"

/// PowerSGD (Vogels et al., NeurIPS 2019): every matrix is sent as two thin factors.
///
/// With M = memory + gradient, a rank's own, and Q the factor of the last step, made orthonormal:
///     P = M Q, summed over ranks and made orthonormal
///     Q = M^T P, averaged over ranks
///     the mean is P Q^T, and the memory keeps M - P Q^T
/// P of all matrices crosses in one all-reduce, with the dense slices; Q in a second one. Shapes
/// decide what is compressed (shape.h), not the rates of a layout.
///
/// The memory holds M until the next step, which takes P Q^T off as it adds the gradient: undo()
/// has only to forget the factors.
namespace scalecom::methods::powersgd {

std::unique_ptr<Method> make(const core::OptionString& options);
std::string allowed_options();

}  // namespace scalecom::methods::powersgd
