#include "fuzz/run.h"

#include "fuzz/input.h"

namespace fuzz {

train::RunFolder& run() {
  static train::RunFolder one = [] {
    train::Request request;
    request.task = "synthetic";
    request.method = "dense";
    train::Config config = train::resolve(request);
    config.steps = 1;
    return train::RunFolder::create(folder() / "run", config);
  }();
  return one;
}

}  // namespace fuzz
