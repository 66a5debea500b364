// What the driver's functions, a file a subject, have in common.
#pragma once

#include "tests/cuda/FakeDriver/Machine.h"

#include <algorithm>

using namespace gradc::rt::cuda;

extern "C" {
// A function that is defined otherwise than it is declared here does not compile.
#define GRADC_CUDA(name, symbol, parameters) Result symbol parameters;
#include "runtime/cuda/DriverApi.def"
#undef GRADC_CUDA
}

namespace gradc::rt::cuda::fake {

inline Machine &machine() { return Machine::get(); }

/// Takes an object out of a set; false where it is not there.
template <typename Set, typename T> bool take(Set &set, T object) {
  auto found = std::find(set.begin(), set.end(), object);
  if (found == set.end())
    return false;
  set.erase(found);
  return true;
}

/// Release of an object: it is gone even where the call is told to fail.
template <typename Set, typename T> Result releaseFrom(Set &set, T *object, Result told) {
  if (!take(set, object))
    return machine().complain(errorInvalidHandle, "an object is released that does not exist");
  delete object;
  return told;
}

inline Result queueWork(Stream stream, std::function<Result()> work) {
  return machine().queue(stream, {Operation::Kind::work, std::move(work)});
}

} // namespace gradc::rt::cuda::fake

using gradc::rt::cuda::fake::machine;
using gradc::rt::cuda::fake::queueWork;

// What every function begins with; `need` adds that a context is current and no error stuck.
#define ENTER(symbol)                                                                              \
  if (Result told = machine().enter(#symbol); told != success)                                     \
  return told
#define ENTER_READY(symbol)                                                                        \
  ENTER(symbol);                                                                                   \
  if (Result result = machine().ready(); result != success)                                        \
  return result
#define NEED(condition, result)                                                                    \
  if (!(condition))                                                                                \
  return result
#define NEED_NO_CAPTURE()                                                                          \
  if (Result result = machine().refuseInCapture(); result != success)                              \
  return result
