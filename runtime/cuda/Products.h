// What multiplies matrices on a GPU: a library's part, which a device is given.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/Abi.h"
#include "runtime/Status.h"
#include "runtime/cuda/DriverApi.h"

namespace gradc::rt::cuda {

/// Where the operands of a product lie: addresses of batch element (0, 0); 0 where it has none.
struct ProductAddresses {
  Address a = 0, b = 0, c = 0;
  Address scaleA = 0, scaleB = 0; ///< an f32 each
  Address bias = 0, aux = 0;
  Address workspace = 0;
};

/// What measuring needs of a device.
struct TuningDevice {
  /// Seconds from when the device begins what `work` queues to its end.
  std::function<Expected<double>(const std::function<Status()> &work)> seconds;
  /// Calls `work` and puts the bytes back to what they were before.
  std::function<Status(cuda::Address begin, int64_t bytes, const std::function<Status()> &work)>
      preserving;
};

/// Not for use by several threads at once.
class Products {
public:
  virtual ~Products() = default;

  /// Queues a product on the stream. `gemm` stays where it is as long as this lives. The first call
  /// for a product may prepare it and takes place outside of any capture; later ones may be
  /// captured into a graph.
  virtual Status run(const GradcGemm &gemm, const ProductAddresses &addresses, Stream stream) = 0;

  /// From now on the way in which a product is made is chosen by measuring, at its first call, and
  /// kept in the user's cache for `gpu`, a GPU of that name.
  virtual void tune(TuningDevice device, const std::string &gpu) = 0;
  /// What was chosen by measuring, and its times, a line each.
  virtual std::vector<std::string> choices() const = 0;
};

/// The products of executables; a machine status where their library is missing. The context of the
/// GPU is current, and stays so.
Expected<std::unique_ptr<Products>> createProducts();

} // namespace gradc::rt::cuda
