#include "scalecom/core/error.h"
#include "train/models/layers/cuda/ctc.h"
#include "train/models/layers/cuda/dropout.h"
#include "train/models/layers/cuda/lstm.h"
#include "train/models/layers/cuda/token_table.h"

/// Never called: without CUDA there are no tensors on a GPU.
namespace train::models::layers::cuda {
namespace {

[[noreturn]] void refuse() {
  throw scalecom::core::UsageError("[train] the libtorch of this build has no CUDA");
}

}  // namespace

void ctc(const Ctc& /*shape*/, const CtcPass& /*pass*/, const scalecom::core::Stream& /*stream*/) {
  refuse();
}

void drop(const float* /*x*/, const Drawn& /*drawn*/, float* /*y*/,
          const scalecom::core::Stream& /*stream*/) {
  refuse();
}

void lstm_forward(const LstmStep& /*step*/, const LstmForward& /*pass*/,
                  const scalecom::core::Stream& /*stream*/) {
  refuse();
}

void lstm_backward(const LstmStep& /*step*/, const LstmBackward& /*pass*/,
                   const scalecom::core::Stream& /*stream*/) {
  refuse();
}

void token_table_gradient(const TableGradient& /*pass*/, const scalecom::core::Stream& /*stream*/) {
  refuse();
}

}  // namespace train::models::layers::cuda
