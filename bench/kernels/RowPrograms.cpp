// Times row programs of a GPT-2 step on two threads (another number as the first argument), against
// the bytes that they must move. Sets of buffers larger than the caches take turns in the "cold"
// column; "warm" repeats one set.
#include "codegen/cpu/LoadedKernel.h"
#include "codegen/cpu/RowProgram.h"
#include "ir/row/Evaluate.h"
#include "tests/numerics/SamplePrograms.h"

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <thread>

using namespace gradc;
using row::Dtype;
using row::Program;

namespace {

/// Threads that spin between launches, so that short kernels are timed and not the waking.
class Threads {
public:
  explicit Threads(int count) : count(count) {
    for (int i = 1; i < count; ++i)
      workers.emplace_back([this] { work(); });
  }
  ~Threads() {
    stop = true;
    for (std::thread &worker : workers)
      worker.join();
  }
  void launch(GradcKernelFn function, void *const *pointers, int64_t rows, int64_t taskCount) {
    kernel = function;
    buffers = pointers;
    extent = rows;
    tasks = taskCount;
    next = 0;
    idle = 0;
    ++generation;
    takeTasks();
    while (idle != count - 1)
      std::this_thread::yield();
  }

private:
  void takeTasks() {
    for (int64_t task = next++; task < tasks; task = next++)
      kernel(buffers, extent, task);
  }
  void work() {
    for (int64_t seen = 0; !stop;) {
      if (generation == seen) {
        std::this_thread::yield();
        continue;
      }
      ++seen;
      takeTasks();
      ++idle;
    }
  }
  int count;
  std::vector<std::thread> workers;
  std::atomic<bool> stop{false};
  std::atomic<int64_t> generation{0}, next{0};
  std::atomic<int> idle{0};
  GradcKernelFn kernel = nullptr;
  void *const *buffers = nullptr;
  int64_t extent = 0, tasks = 0;
};

/// Memory on huge pages, touched once, never given back.
void *allocate(size_t bytes) {
  constexpr size_t page = size_t{2} << 20;
  bytes = (bytes + page - 1) / page * page;
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw std::bad_alloc();
  madvise(memory, bytes, MADV_HUGEPAGE);
  std::memset(memory, 0, bytes);
  return memory;
}

/// Memory for each buffer, filled with numbers in (0, 1); i32 buffers stay 0.
std::vector<void *> allocateBuffers(const Program &program, int64_t extent) {
  std::vector<void *> pointers;
  std::mt19937 random(1);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    int64_t count = row::elementCount(program, static_cast<int32_t>(i), extent);
    Dtype dtype = program.buffers[i].dtype;
    void *memory = allocate(count * row::byteSize(dtype));
    for (int64_t k = 0; k < count && dtype != Dtype::i32; ++k) {
      float value = static_cast<float>(random() >> 8) * 0x1p-24f + 1e-6f;
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      if (dtype == Dtype::f32)
        static_cast<uint32_t *>(memory)[k] = bits;
      else
        static_cast<uint16_t *>(memory)[k] = static_cast<uint16_t>(bits >> 16);
    }
    pointers.push_back(memory);
  }
  return pointers;
}

double milliseconds() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

template <typename Run> double best(Run run) {
  double least = 1e9;
  for (int i = 0; i < 9; ++i) {
    double start = milliseconds();
    run();
    least = std::min(least, milliseconds() - start);
  }
  return least;
}

/// Bytes that each launch reads and writes.
double bytesMoved(const Program &program, int64_t extent) {
  double bytes = 0;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    bool read = false, written = false;
    for (const row::Node &node : program.nodes)
      read = read || (node.buffer == static_cast<int>(i) && node.kind == row::NodeKind::load);
    for (const row::Effect &effect : program.effects)
      written = written || effect.buffer == static_cast<int>(i);
    bytes += static_cast<double>(row::elementCount(program, static_cast<int32_t>(i), extent) *
                                 row::byteSize(program.buffers[i].dtype) * (read + written));
  }
  return bytes;
}

void bench(Threads &threads, const char *name, const Program &program, int64_t extent, int repeats,
           int sets) {
  codegen::CpuTarget target = codegen::CpuTarget::host();
  double start = milliseconds();
  auto kernel = codegen::LoadedKernel::compile(
      target, [&](mlir::OpBuilder &builder, mlir::ModuleOp module, llvm::StringRef symbol) {
        codegen::emitRowProgram(builder, module, program, symbol, target);
      });
  if (!kernel) {
    std::fprintf(stderr, "%s: %s\n", name, llvm::toString(kernel.takeError()).c_str());
    std::exit(1);
  }
  double compileTime = milliseconds() - start;
  std::vector<std::vector<void *>> memory;
  for (int i = 0; i < sets; ++i)
    memory.push_back(allocateBuffers(program, extent));
  int64_t tasks = row::taskCount(program, extent);
  auto run = [&](bool cold) {
    for (int i = 0; i < repeats; ++i)
      threads.launch(kernel->function(), memory[cold ? i % sets : 0].data(), extent, tasks);
  };
  double warm = best([&] { run(false); }), cold = best([&] { run(true); });
  double gigabytes = bytesMoved(program, extent) * repeats * 1e-9;
  std::printf("%-34s x%-3d warm %7.2f ms  cold %7.2f ms  %6.1f GB/s  compile %5.1f ms\n", name,
              repeats, warm, cold, gigabytes / cold * 1e3, compileTime);
  for (const std::vector<void *> &set : memory)
    for (size_t i = 0; i < set.size(); ++i)
      madvise(set[i],
              row::elementCount(program, static_cast<int32_t>(i), extent) *
                  row::byteSize(program.buffers[i].dtype),
              MADV_DONTNEED);
}

} // namespace

int main(int argc, char **argv) {
  using namespace row::samples;
  int count = argc > 1 ? std::max(1, std::atoi(argv[1])) : 2;
  const char *only = argc > 2 ? argv[2] : "";
  Threads threads(count);
  auto run = [&](const char *name, const Program &program, int64_t extent, int repeats, int sets) {
    if (std::strstr(name, only))
      bench(threads, name, program, extent, repeats, sets);
  };
  std::printf("%d threads\n", count);
  run("residual + layer norm f32", residualLayerNorm(768), 1024, 25, 25);
  run("residual + layer norm bf16", residualLayerNorm(768, Dtype::bf16), 1024, 25, 25);
  run("layer norm backward f32", layerNormBackward(768), 1024, 25, 25);
  run("bias + gelu f32", biasGeluTanh(3072), 1024, 12, 12);
  run("bias + gelu bf16", biasGeluTanh(3072, Dtype::bf16), 1024, 12, 12);
  run("bias + gelu backward f32", biasGeluTanhBackward(3072), 1024, 12, 12);
  run("bias + gelu erf f32", biasGeluErf(3072), 1024, 12, 12);
  run("swiglu f32", swiGlu(), 1024 * 2048, 12, 6);
  run("causal softmax f32", causalSoftmax(1024, 0.125), 12 * 1024, 1, 1);
  run("cross entropy f32", crossEntropy(50304, 1), 1024, 1, 1);
  run("dropout f32", dropout(768, 0.1), 1024, 25, 25);
  run("adamw + bf16 copy 124M", adamw(true), 124 * 1000 * 1000, 1, 1);
  run("adamw 124M", adamw(false), 124 * 1000 * 1000, 1, 1);
  return 0;
}
