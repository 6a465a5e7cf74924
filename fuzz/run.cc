#include "fuzz/run.h"

#include "fuzz/input.h"

namespace fuzz {

train::runs::RunFolder& run() {
  static train::runs::RunFolder one = [] {
    train::runs::Request request;
    request.task = "synthetic";
    request.method = "dense";
    train::runs::Config config = train::runs::resolve(request);
    config.steps = 1;
    return train::runs::RunFolder::create(folder() / "run", config);
  }();
  return one;
}

}  // namespace fuzz
