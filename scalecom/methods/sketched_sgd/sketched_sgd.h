#pragma once

#include <memory>
#include <string>

#include "scalecom/core/options.h"
#include "scalecom/methods/method.h"

/// SketchedSGD (Ivkin et al., NeurIPS 2019): ranks add up small sketches of what they hold, find
/// the heaviest entries in the sum, and ask each other for those.
///
/// With g the gradient, u = momentum * u + g and v += u. The sketches of v (kernels/sketch.h) are
/// summed over ranks; the entries with the largest estimates, `candidates` for every one that is
/// kept, are summed exactly in a second round, and the largest k of them are the mean. Their u and
/// v become 0 at every rank. Neither round grows with the number of ranks.
///
/// Dense slices have the same momentum, without a memory. So what comes out has momentum in it, and
/// an optimizer is to add none, but for momentum=0.
namespace scalecom::methods::sketched_sgd {

std::unique_ptr<Method> make(const core::OptionString& options);
std::string allowed_options();

}  // namespace scalecom::methods::sketched_sgd
