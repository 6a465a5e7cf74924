#pragma once

#include <memory>
#include <string>

#include "scalecom/core/options.h"
#include "scalecom/methods/method.h"

/// AdaComp (Chen et al., AAAI 2018): every bin of a tensor sends as many entries as matter in it.
///
/// With R the memory and g the gradient, G = R + g and H = G + g. Of every bin the entries with |H|
/// at least the largest |G| are sent, each as its sign times one number of the tensor, the mean
/// over its bins of the largest |G|; R keeps the rest. How many they are differs from rank to rank
/// and step to step, so the ranks tell each other the sizes of their messages first.
///
/// Tensors of two or more dimensions are compressed, whatever the rates of a layout.
namespace scalecom::methods::adacomp {

std::unique_ptr<Method> make(const core::OptionString& options);
std::string allowed_options();

}  // namespace scalecom::methods::adacomp
