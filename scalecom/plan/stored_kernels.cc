// Measurements that come with the library. Each is a figure that docs/ states, and says which.
#include <array>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/plan/kernels.h"

namespace scalecom::plan {
namespace {

struct Stored {
  const char* name;
  const char* device;
  const char* source;
  std::vector<KernelTime> times;
};

const std::vector<Stored>& stored() {
  // The slower of leader and follower.
  static const std::vector<Stored> list = {
      {"h200",
       "an NVIDIA H200",
       "docs/performance.md, \"The GPU\": scalecom bench step and bench reduce, --device cuda",
       {
           {"scalecom,rate=25,select=chunk", 1.0e6, 0.024e-3},
           {"scalecom,rate=25,select=chunk", 6.5e6, 0.040e-3},
           {"scalecom,rate=25,select=chunk", 25.6e6, 0.120e-3},
           {"scalecom,rate=25,select=chunk", 110e6, 0.468e-3},
           {"scalecom,rate=25,select=chunk", 355e6, 1.481e-3},
           {"scalecom,rate=100,select=chunk", 1.0e6, 0.024e-3},
           {"scalecom,rate=100,select=chunk", 6.5e6, 0.040e-3},
           {"scalecom,rate=100,select=chunk", 25.6e6, 0.116e-3},
           {"scalecom,rate=100,select=chunk", 110e6, 0.451e-3},
           {"scalecom,rate=100,select=chunk", 355e6, 1.426e-3},
           {"scalecom,rate=400,select=chunk", 1.0e6, 0.024e-3},
           {"scalecom,rate=400,select=chunk", 6.5e6, 0.040e-3},
           {"scalecom,rate=400,select=chunk", 25.6e6, 0.114e-3},
           {"scalecom,rate=400,select=chunk", 110e6, 0.440e-3},
           {"scalecom,rate=400,select=chunk", 355e6, 1.387e-3},
           {"scalecom,rate=100,select=exact", 25.6e6, 0.185e-3},
           {"scalecom,rate=100,select=exact", 110e6, 0.625e-3},
           {"half,values=fp16", 1.0e6, 0.048e-3},
           {"half,values=fp16", 6.5e6, 0.091e-3},
           {"half,values=fp16", 25.6e6, 0.346e-3},
           {"half,values=fp16", 110e6, 1.408e-3},
           {"topk,rate=100", 1.0e6, 0.107e-3},
           {"topk,rate=100", 6.5e6, 0.473e-3},
           {"topk,rate=100", 25.6e6, 1.748e-3},
           {"topk,rate=100", 110e6, 7.214e-3},
           {"dgc,rate=1000", 1.0e6, 0.318e-3},
           {"dgc,rate=1000", 6.5e6, 1.812e-3},
           {"dgc,rate=1000", 25.6e6, 6.735e-3},
           {"dgc,rate=1000", 110e6, 29.448e-3},
           {"powersgd,rank=4", 1.0e6, 0.232e-3},
           {"powersgd,rank=4", 6.5e6, 0.293e-3},
           {"powersgd,rank=4", 25.6e6, 0.609e-3},
           {"powersgd,rank=4", 110e6, 1.898e-3},
           {"weighted,select=chunk", 1.0e6, 0.019e-3},
           {"weighted,select=chunk", 6.5e6, 0.037e-3},
           {"weighted,select=chunk", 25.6e6, 0.115e-3},
           {"weighted,select=chunk", 110e6, 0.449e-3},
       }},
      // Of 4 million elements: ns an element.
      {"epyc",
       "two cores of an AMD EPYC (Zen 4)",
       "docs/methods.md, \"Table 1, measured\": scalecom compare; docs/performance.md, \"The CPU\"",
       {
           {"half,values=fp16", 4e6, 1.15e-9 * 4e6},
           {"scalecom,rate=100,select=chunk", 1e6, 0.19e-9 * 1e6},
           {"scalecom,rate=100,select=chunk", 4e6, 0.30e-9 * 4e6},
           {"scalecom,rate=100,select=chunk", 25.6e6, 0.33e-9 * 25.6e6},
           {"scalecom,rate=100,select=chunk", 100e6, 0.23e-9 * 100e6},
           {"scalecom,rate=100,select=chunk", 200e6, 0.22e-9 * 200e6},
           {"scalecom,rate=100,select=random", 4e6, 0.21e-9 * 4e6},
           {"weighted,select=chunk", 4e6, 0.21e-9 * 4e6},
           {"topk,rate=100", 4e6, 1.38e-9 * 4e6},
           {"gtopk,rate=100", 4e6, 1.98e-9 * 4e6},
           {"dgc,rate=1000", 4e6, 1.22e-9 * 4e6},
           {"adacomp,bin=500,conv_bin=50", 4e6, 1.99e-9 * 4e6},
           {"powersgd,rank=4", 4e6, 2.46e-9 * 4e6},
           {"sketched_sgd,rows=5,columns=0,candidates=4", 4e6, 11.41e-9 * 4e6},
       }},
  };
  return list;
}

}  // namespace

std::vector<std::string> stored_kernels() {
  std::vector<std::string> names;
  for (const Stored& one : stored()) names.emplace_back(one.name);
  return names;
}

Kernels stored_kernels_of(const std::string& name) {
  for (const Stored& one : stored()) {
    if (name == one.name) return {one.device, one.source, one.times};
  }
  throw core::UsageError(core::concat("[plan] no kernel times '", name, "'; there are ",
                                      core::join(stored_kernels()),
                                      ", and files of scalecom bench whose names end in .json"));
}

}  // namespace scalecom::plan
