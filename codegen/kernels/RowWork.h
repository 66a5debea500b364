// What a row program's launch does, by what its target keeps at hand from loop to loop.
#pragma once

#include "ir/Cluster.h"
#include "ir/KernelLibrary.h"

namespace gradc::codegen {

/// What a target does once for the loops of a row, rather than once a loop.
struct RowReuse {
  int64_t columnsAgain = 0;    ///< of a row, that each loop loads anew: the others stay at hand
  bool againFromCache = false; ///< which a cache then has
  bool computes = true;        ///< so do computed values
  bool sums = true;            ///< sums of columns reach memory once a task
};

/// Of a launch on `extent` rows (elements, where flat) with the program's buffers. A column's, a
/// row's or the launch's only number is one that all rows or threads share.
KernelWork rowWork(const row::Program &program, int64_t extent, const RowReuse &reuse);
/// The same with the buffers of the cluster's launch.
KernelWork rowWork(const nn::ClusterProgram &cluster, const RowReuse &reuse);

} // namespace gradc::codegen
