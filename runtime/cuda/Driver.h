// CUDA's driver as it is found where an executable runs: libcuda.so.1, never linked.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "runtime/Status.h"
#include "runtime/cuda/DriverApi.h"
#include "runtime/cuda/DynamicLibrary.h"

namespace gradc::rt::cuda {

class Driver;

/// One function of the driver. Called, it gives a status that names the function and, by the
/// driver's own word, the error; all of them are faults of the machine.
template <typename Signature> class Call;
template <typename... Parameters> class Call<Result(Parameters...)> {
public:
  Status operator()(Parameters... arguments) const;
  Result raw(Parameters... arguments) const { return function_(arguments...); }

private:
  friend class Driver;
  Result (*function_)(Parameters...) = nullptr;
  const char *symbol_ = nullptr;
  const Driver *driver_ = nullptr;
};

class Driver {
public:
  /// Loads $GRADC_LIBCUDA, a file, where it is set, else libcuda.so.1, and initialises it. A
  /// machine status says what is missing.
  static Expected<std::unique_ptr<Driver>> load();
  Driver(const Driver &) = delete;
  Driver &operator=(const Driver &) = delete;

  /// "CALL failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory)". A symbol's version is left out.
  Status failure(Result result, const char *symbol) const;

#define GRADC_CUDA(name, symbol, parameters) Call<Result parameters> name;
#include "runtime/cuda/DriverApi.def"
#undef GRADC_CUDA

private:
  explicit Driver(DynamicLibrary library) : library_(std::move(library)) {}
  Status resolve();

  DynamicLibrary library_;
};

template <typename... Parameters>
Status Call<Result(Parameters...)>::operator()(Parameters... arguments) const {
  Result result = function_(arguments...);
  return result == success ? Status() : driver_->failure(result, symbol_);
}

/// An object of the driver, given back by the function that belongs to it. What that says is not
/// heard: nothing is left to do about it.
template <typename T> class Owned {
public:
  Owned() = default;
  Owned(const Call<Result(T)> &release, T object) : release_(&release), object_(object) {}
  Owned(Owned &&other) noexcept { *this = std::move(other); }
  Owned &operator=(Owned &&other) noexcept {
    std::swap(release_, other.release_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() {
    if (object_)
      (void)release_->raw(object_);
  }

  T get() const { return object_; }

private:
  const Call<Result(T)> *release_ = nullptr; ///< of a driver that outlives this
  T object_{};
};

Expected<Owned<Stream>> createStream(const Driver &driver);
/// `flags`: eventDefault or eventWithoutTimes.
Expected<Owned<Event>> createEvent(const Driver &driver, unsigned flags);
/// Memory of the host that copies may reach while it runs on.
Expected<Owned<void *>> createPinned(const Driver &driver, std::size_t bytes);

} // namespace gradc::rt::cuda
