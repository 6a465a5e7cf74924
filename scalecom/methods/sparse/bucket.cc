#include "scalecom/methods/sparse/bucket.h"

#include "scalecom/kernels/elementwise.h"
#include "scalecom/kernels/kernels.h"

namespace scalecom::methods::sparse {

namespace elementwise = kernels::elementwise;

void Bucket::begin(const core::Buffer& grad, int ranks, std::int64_t step,
                   const core::Stream& stream) {
  reserve(grad.dtype, ranks, stream);
  forget_sent();
  grad_ = grad;
  ranks_ = ranks;
  step_ = step;
  stream_ = stream;
}

HostBucket::HostBucket(const layout::Layout& layout)
    : Bucket(layout), rest_({}, shape_.dense_elements + 1) {}

bool HostBucket::load_dense(float factor) {
  bool finite = true;
  for (const Shape::DensePart& part : shape_.dense_parts) {
    finite &= kernels::table().load(grad_.at(part.offset), grad_.dtype, part.length, factor,
                                    rest_.data() + part.place);
  }
  return finite;
}

void HostBucket::set_flag(bool finite) {
  rest().back() = finite ? 0.0F : 1.0F;
  sent_ = true;
}

bool HostBucket::rest_is_finite() {
  elementwise::Flag flag = 0;
  elementwise::check_finite(rest_.data(), rest_.size(), &flag, {});
  return flag == 0 && rest().back() == 0.0F;
}

// All ranks see the same bits, so all go the same way.
void HostBucket::finish() {
  if (rest_is_finite() && put_items()) {
    for (const Shape::DensePart& part : shape_.dense_parts) {
      kernels::table().store(rest_.data() + part.place, part.length, 1.0F, grad_.at(part.offset),
                             grad_.dtype);
    }
    return;
  }
  put_back();
  const elementwise::Flag refused = 1;
  elementwise::store(nullptr, grad_.elements, grad_.data, grad_.dtype, &refused, {});
}

void HostBucket::put_back() {
  if (sent_) put_back_items();
  sent_ = false;
}

}  // namespace scalecom::methods::sparse
