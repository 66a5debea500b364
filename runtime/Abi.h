// The boundary between a compiled step program and the runtime: plain structs, all of whose fields
// are 64-bit integers or pointers, so that the compiler can write them as LLVM constants with no
// knowledge of the C++ ABI's padding. The functions are listed in Abi.def.
//
// An executable is: kernels (GradcKernelFn), constant data, one function a program (train_step, …)
// that is a straight list of calls with these descriptors, and a JSON metadata blob
// (docs/design/executable.md). All are reached from the one symbol `gradc_executable`.
#pragma once

#include <cstdint>

inline constexpr int64_t GRADC_ABI_VERSION = 6;

extern "C" {

struct GradcContext;

/// Which base address an offset counts from.
enum GradcSpace : int64_t {
  GRADC_STATE = 0,    ///< parameters, optimizer state, inputs, scalars, outputs: live between steps
  GRADC_ARENA = 1,    ///< everything that lives within one step; contents undefined at its start
  GRADC_CONSTANT = 2, ///< read-only data of the executable
};

/// A planned buffer: base(space) + offset + iteration * loopStride, in bytes. `iteration` is the
/// microbatch index set by gradc_begin_iteration; loopStride is zero but for per-microbatch inputs.
struct GradcBuffer {
  int64_t space;
  int64_t offset;
  int64_t loopStride;
  int64_t bytes; ///< from its first to behind its last, gaps between rows included
};

/// One task of a kernel. Tasks of a launch are independent, their number never depends on the
/// number of threads, and each writes only its own part of the outputs: results are the same bits
/// for any number of threads. `extent` is the size that varies between uses of one kernel (rows of
/// a row program, elements of a flat one).
typedef void (*GradcKernelFn)(void *const *buffers, int64_t extent, int64_t task);

struct GradcEmulatedKernel; // runtime/emulator/Abi.h

/// A kernel of a GPU, whose entry point has the name that its launches have. The parameters are the
/// buffers' addresses and the extent (i64), but see GradcLaunch of launches in parts; a task is a
/// block of threads.
struct GradcGpuKernel {
  int64_t threads;                     ///< a block
  int64_t sharedBytes;                 ///< dynamic shared memory a block
  int64_t inputs;                      ///< so many of the first buffers are only read
  const GradcEmulatedKernel *emulated; ///< null but in emulated executables
};

enum GradcImageKind : int64_t {
  GRADC_PTX = 0,   ///< text that ends with a zero byte
  GRADC_CUBIN = 1, ///< an ELF file
};

/// All kernels of an executable as code for a GPU.
struct GradcImage {
  int64_t kind;       ///< a GradcImageKind
  int64_t capability; ///< the compute capability times ten: 90 of sm_90
  const void *data;
  int64_t bytes;
};

struct GradcImages {
  int64_t count;
  const GradcImage *images;
};

/// One of the groups of buffers that a launch in parts runs its kernel on.
struct GradcPart {
  int64_t extent;
  int64_t firstTask; ///< of the launch, whose tasks go on with the next part's
};

/// A launch of a kernel on one group of buffers or, where `partCount` is not 0, on many (the update
/// of all parameters): task t then is task t - firstTask of the last part whose firstTask is at
/// most t, on that part's buffers and extent. Tasks of all parts are independent.
///
/// A kernel of a GPU that is launched in parts takes two parameters instead of its buffers and
/// extent: the address of a table in the device's memory, and `partCount` (i64). Before the first
/// launch the device writes the table to where `table` says, in 64-bit words: `partCount` times
/// firstTask, then for each part its extent and the addresses of its `bufferCount` buffers. These
/// have no loopStride, so that the table never changes (runtime/Parts.h fills it).
struct GradcLaunch {
  const char *name;
  GradcKernelFn kernel;             ///< null where `gpu` is not
  const GradcGpuKernel *gpu;        ///< null in executables for the CPU
  int64_t extent;                   ///< in parts: of all parts together
  int64_t tasks;                    ///< in parts: of all parts together
  int64_t bufferCount;              ///< of the kernel
  const GradcBuffer *buffers;       ///< bufferCount of them; in parts: of each part in turn
  int64_t flops;                    ///< arithmetic operations of the launch, for traces
  int64_t bytes;                    ///< bytes that it asks memory for, for traces
  int64_t isProduct;                ///< 1: a matrix product, for the bench's share of them
  int64_t partCount = 0;            ///< 0: not in parts
  const GradcPart *parts = nullptr; ///< null where not in parts
  GradcBuffer table = {}; ///< of GPUs: 8 * partCount * (2 + bufferCount) bytes; else of 0 bytes
  int64_t stream = 0;     ///< see GradcStreamEvent
};

enum GradcType : int64_t {
  GRADC_F32 = 0,
  GRADC_BF16 = 1,
  GRADC_F16 = 2,
  GRADC_F8E4M3 = 3,
  GRADC_F8E5M2 = 4,
};

/// A strided matrix operand, in elements. Two batch dimensions (e.g. batch and head) with strides;
/// a stride of zero repeats the matrix.
struct GradcMatrix {
  GradcBuffer buffer;
  int64_t rowStride;
  int64_t columnStride;
  int64_t batchStride[2];
  int64_t type; ///< a GradcType
};

/// What becomes of a product on its way to C, in f32, as a GPU's library does it. x is the product,
/// with beta C; the bias has an element a column of C; aux is a matrix as large as C, of its type.
/// The GELU is its tanh form.
enum GradcEpilogue : int64_t {
  GRADC_NO_EPILOGUE = 0,         ///< x
  GRADC_BIAS = 1,                ///< x + bias
  GRADC_GELU = 2,                ///< gelu(x)
  GRADC_GELU_AUX = 3,            ///< gelu(x), and x is written to aux
  GRADC_GELU_BIAS = 4,           ///< gelu(x + bias)
  GRADC_GELU_AUX_BIAS = 5,       ///< gelu(x + bias), and x + bias is written to aux
  GRADC_DGELU = 6,               ///< x * gelu'(aux)
  GRADC_DGELU_BIAS_GRADIENT = 7, ///< the same, and its sums over rows are written to the bias
  GRADC_BIAS_GRADIENT_A = 8,     ///< x, and A's sums over k, an element a row of C, to the bias
  GRADC_BIAS_GRADIENT_B = 9,     ///< x, and B's sums over k, an element a column of C, to the bias
};

/// C[i,j] = A[i] B[j] + beta C for every (i, j) of the two batch dimensions; A is m x k, B k x n.
/// Sums are in f32. One of a matrix's two strides is 1.
struct GradcGemm {
  const char *name;
  int64_t m, n, k;
  int64_t batch[2]; ///< 1 where there is no batch dimension
  GradcMatrix a, b, c;
  int64_t accumulate;     ///< 1: beta is 1; 0: C is only written
  GradcBuffer workspace;  ///< the library's own: operands repacked, parts of sums
  int64_t workspaceBytes; ///< 0: it gets none
  int64_t tf32;           ///< 1: A and B, of f32, are rounded to 10 bits of mantissa
  int64_t scaled;         ///< 1: A and B are multiplied by the f32 numbers at scaleA and scaleB
  GradcBuffer scaleA, scaleB;
  int64_t epilogue; ///< a GradcEpilogue; of products without batches only
  GradcBuffer bias;
  int64_t biasType; ///< a GradcType
  GradcBuffer aux;
  int64_t auxStride; ///< elements from row to row
  int64_t stream;    ///< see GradcStreamEvent
  int64_t flops;     ///< of all batches, for traces
  int64_t bytes;     ///< of all batches, each operand read once and C written once, for traces
};

/// Launches and products of one stream run in the program's order; those of another may run beside
/// them, but for what waits: from gradc_wait_event on, a stream runs behind what the event's stream
/// was given before gradc_record_event. A program begins and ends on stream 0, which all others
/// have waited for before and which waits for them at the end. The program's order is always right:
/// a device may take no notice of streams and events.
struct GradcStreamEvent {
  int64_t event;  ///< its number, from 0; recorded again only once it was waited for
  int64_t stream; ///< that records or waits
};

struct GradcProgram {
  const char *name; ///< train_step, gradients, eval_loss, logits
  void (*run)(GradcContext *);
};

struct GradcDeviceKind; // runtime/Device.h

struct GradcExecutable {
  int64_t abiVersion;
  const char *metadata; ///< JSON text, metadataBytes long, in the ELF section .gradc.metadata
  int64_t metadataBytes;
  const void *constants;
  int64_t constantBytes;
  int64_t programCount;
  const GradcProgram *programs;
  const GradcDeviceKind *device; ///< what the programs run on: a symbol of the target's runtime
  const GradcImages *images;     ///< null but in executables for a GPU
};

/// Defined by the compiled object file.
extern const GradcExecutable gradc_executable;

} // extern "C"
