#include "train/models/together/columns.h"

#include <ATen/ATen.h>

#include "train/models/together/on_device.h"

namespace train::models::together {

at::Tensor columns_of(const at::Tensor& x, std::int64_t kernel, std::int64_t stride) {
  const at::Tensor places = x.permute({0, 2, 3, 1});
  if (kernel == 1) return places.slice(1, 0, {}, stride).slice(2, 0, {}, stride).flatten(0, 2);
  if (has_kernels(x)) {
    const Places in = places_of(x);
    const at::Tensor out =
        at::empty({in.after(stride).count(), kernel * kernel * in.channels}, x.options());
    cuda::write_columns(x.const_data_ptr(), in, kernel, stride, out.mutable_data_ptr(),
                        current_stream(x));
    return out;
  }
  const std::int64_t around = kernel / 2;
  return at::constant_pad_nd(places, {0, 0, around, around, around, around})
      .unfold(1, kernel, stride)
      .unfold(2, kernel, stride)
      .permute({0, 1, 2, 4, 5, 3})
      .reshape({-1, kernel * kernel * x.size(1)});
}

}  // namespace train::models::together
