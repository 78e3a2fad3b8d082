// What a worker is told by whoever started it (meshwright run, torchrun, mpirun).
#pragma once

#include <string>

namespace meshwright {

struct WorkerEnvironment {
  int rank = 0;
  int world_size = 1;
  std::string store_url;  ///< See CommWorld::connect(); not used by a single rank.
};

}  // namespace meshwright
