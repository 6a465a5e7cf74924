#pragma once

#include <memory>

#include "comparison/operations/statement.h"
#include "scalecom/core/options.h"

/// One function a method, in a file of its name; the options are complete.
namespace comparison::operations {

std::unique_ptr<Statement> state_adacomp(const scalecom::core::OptionString& options);
std::unique_ptr<Statement> state_dense(const scalecom::core::OptionString& options);
std::unique_ptr<Statement> state_dgc(const scalecom::core::OptionString& options);
std::unique_ptr<Statement> state_gtopk(const scalecom::core::OptionString& options);
std::unique_ptr<Statement> state_half(const scalecom::core::OptionString& options);
std::unique_ptr<Statement> state_powersgd(const scalecom::core::OptionString& options);
std::unique_ptr<Statement> state_scalecom(const scalecom::core::OptionString& options);
std::unique_ptr<Statement> state_sketched_sgd(const scalecom::core::OptionString& options);
std::unique_ptr<Statement> state_topk(const scalecom::core::OptionString& options);
std::unique_ptr<Statement> state_weighted(const scalecom::core::OptionString& options);

/// What every method does to what travels dense: the mean, and a look at whether it is finite.
/// Alone, a rank divides by one all the same.
void mean_of_dense(std::span<Number> values);

/// What methods whose ranks choose for themselves do to an entry that was taken out of a memory: it
/// is added to the mean of what others have sent there.
void add_to_mean(Number& mean, Number& sent);

}  // namespace comparison::operations
