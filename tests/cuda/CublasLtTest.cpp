// Products through cuBLASLt's interface, over a stand-in that refuses what the library would refuse
// or misread: every type, transposition, epilogue and kind of batch, against f64.
#include "runtime/cuda/CublasLtProducts.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tests/cuda/FakeCublasLt.h"
#include "tests/cuda/GemmReference.h"

namespace gradc::rt {
namespace {

class CublasLt : public testing::Test {
protected:
  void SetUp() override {
    setenv("GRADC_CUBLASLT_PATH", GRADC_FAKE_CUBLASLT, 1);
    fake = dlopen(GRADC_FAKE_CUBLASLT, RTLD_NOW);
    ASSERT_NE(fake, nullptr) << dlerror();
    auto made = CublasLtProducts::create();
    ASSERT_TRUE(made.ok()) << made.status().message();
    products = std::move(*made);
  }
  void TearDown() override {
    products.reset();
    EXPECT_EQ(count<FakeCublasLtLiveObjects>("fakeCublasLtLiveObjects"), 0);
    dlclose(fake);
    unsetenv("GRADC_CUBLASLT_PATH");
  }

  template <typename Counter> int64_t count(const char *name) {
    return reinterpret_cast<Counter *>(dlsym(fake, name))();
  }

  Status run(GemmOperandsOnHost &operands) {
    GemmAddresses at{operands.a(),      operands.b(),    operands.c(),   operands.scaleA(),
                     operands.scaleB(), operands.bias(), operands.aux(), operands.workspace()};
    return products->run(operands.gemm(), at, nullptr);
  }

  void check(const GemmCase &gemm) {
    SCOPED_TRACE(testing::Message()
                 << "types " << gemm.typeA << " " << gemm.typeB << " " << gemm.typeC << ", "
                 << (gemm.transposeA ? "t" : "n") << (gemm.transposeB ? "t" : "n") << ", epilogue "
                 << gemm.epilogue << ", batch " << gemm.batch[0] << " x " << gemm.batch[1]);
    auto &kept = all.emplace_back(std::make_unique<GemmOperandsOnHost>(gemm));
    Status status = run(*kept);
    ASSERT_TRUE(status.ok()) << status.message();
    kept->expectReference();
  }

  void *fake = nullptr;
  std::unique_ptr<CublasLtProducts> products;
  /// Descriptors stay where they are, as an executable's do.
  std::vector<std::unique_ptr<GemmOperandsOnHost>> all;
};

struct Types {
  GradcType operands, result;
};
constexpr Types types[] = {{GRADC_F32, GRADC_F32},
                           {GRADC_BF16, GRADC_F32},
                           {GRADC_BF16, GRADC_BF16},
                           {GRADC_F16, GRADC_F32},
                           {GRADC_F16, GRADC_F16}};

TEST_F(CublasLt, EveryTypeAndTranspositionAndEpilogue) {
  for (Types type : types)
    for (bool transposeA : {false, true})
      for (bool transposeB : {false, true})
        for (int64_t epilogue = GRADC_NO_EPILOGUE; epilogue <= GRADC_BIAS_GRADIENT_B; ++epilogue)
          check({.m = 5,
                 .n = 24,
                 .k = 11,
                 .typeA = type.operands,
                 .typeB = type.operands,
                 .typeC = type.result,
                 .transposeA = transposeA,
                 .transposeB = transposeB,
                 .epilogue = epilogue});
}

TEST_F(CublasLt, EveryKindOfBatch) {
  for (Types type : types)
    for (bool transpose : {false, true})
      for (bool interleaved : {false, true})
        for (int64_t outer : {1, 3})
          for (int64_t inner : {1, 2})
            check({.m = 7,
                   .n = 5,
                   .k = 6,
                   .typeA = type.operands,
                   .typeB = type.operands,
                   .typeC = type.result,
                   .transposeB = transpose,
                   .batch = {outer, inner},
                   .interleaved = interleaved});
}

TEST_F(CublasLt, Float8WithScales) {
  for (GradcType a : {GRADC_F8E4M3, GRADC_F8E5M2})
    for (GradcType result : {GRADC_F32, GRADC_BF16, GRADC_F16})
      check({.m = 32,
             .n = 16,
             .k = 48,
             .typeA = a,
             .typeB = GRADC_F8E4M3,
             .typeC = result,
             .transposeB = true,
             .scaled = true});
  check({.m = 16,
         .n = 16,
         .k = 32,
         .typeA = GRADC_F8E4M3,
         .typeB = GRADC_F8E5M2,
         .typeC = GRADC_F32,
         .transposeB = true,
         .accumulate = true,
         .scaled = true});
  check({.m = 16,
         .n = 32,
         .k = 32,
         .typeA = GRADC_F8E4M3,
         .typeB = GRADC_F8E4M3,
         .typeC = GRADC_BF16,
         .transposeB = true,
         .epilogue = GRADC_BIAS,
         .scaled = true});
}

TEST_F(CublasLt, Tf32AndAccumulation) {
  check({.m = 9, .n = 6, .k = 20, .tf32 = true});
  for (Types type : types)
    for (int64_t epilogue : {GRADC_NO_EPILOGUE, GRADC_BIAS_GRADIENT_A, GRADC_BIAS_GRADIENT_B})
      check({.m = 9,
             .n = 6,
             .k = 20,
             .typeA = type.operands,
             .typeB = type.operands,
             .typeC = type.result,
             .epilogue = epilogue,
             .accumulate = true});
}

TEST_F(CublasLt, SingleRowsAndColumns) {
  for (int64_t m : {1, 3})
    for (int64_t n : {1, 3})
      for (int64_t k : {1, 3})
        for (bool transpose : {false, true})
          check({.m = m, .n = n, .k = k, .transposeA = transpose, .transposeB = !transpose});
}

TEST_F(CublasLt, PreparesAShapeOnce) {
  GemmCase gemm{.m = 8, .n = 8, .k = 8};
  int64_t before = count<FakeCublasLtSearches>("fakeCublasLtSearches");
  check(gemm);
  check(gemm); // another product of the same shape, in memory of the same alignment
  gemm.k = 16;
  check(gemm);
  int64_t live = count<FakeCublasLtLiveObjects>("fakeCublasLtLiveObjects");
  for (auto &operands : all)
    ASSERT_TRUE(run(*operands).ok());
  EXPECT_EQ(count<FakeCublasLtSearches>("fakeCublasLtSearches") - before, 2);
  EXPECT_EQ(count<FakeCublasLtLiveObjects>("fakeCublasLtLiveObjects"), live);
}

/// The same product timed: the second algorithm that is offered takes the least.
class CublasLtTuning : public CublasLt {
protected:
  void SetUp() override {
    CublasLt::SetUp();
    folder = testing::TempDir() + "gradc-algorithms";
    std::filesystem::remove_all(folder);
    setenv("GRADC_CACHE_DIR", folder.c_str(), 1);
    tune();
  }
  void TearDown() override {
    unsetenv("GRADC_CACHE_DIR");
    CublasLt::TearDown();
  }
  void tune() {
    TuningDevice device;
    device.seconds = [this](const std::function<Status()> &work) -> Expected<double> {
      GRADC_RETURN_IF_ERROR(work());
      return ++timed <= 5 ? 3e-6 : 2e-6;
    };
    device.preserving = [](std::byte *begin, int64_t bytes, const std::function<Status()> &work) {
      std::vector<std::byte> copy(begin, begin + bytes);
      Status status = work();
      std::copy(copy.begin(), copy.end(), begin);
      return status;
    };
    products->tune(device, "a GPU");
  }

  std::string folder;
  int timed = 0;
};

TEST_F(CublasLtTuning, MeasuresAShapeOnceAndKeepsTheFastest) {
  check({.m = 8, .n = 8, .k = 8});
  EXPECT_EQ(timed, 10); // two algorithms
  check({.m = 8, .n = 8, .k = 8});
  EXPECT_EQ(timed, 10);
  ASSERT_EQ(products->choices().size(), 1u);
  EXPECT_NE(products->choices()[0].find("choice 2 of 2, 2.0 us (its first: 3.0 us)"),
            std::string::npos)
      << products->choices()[0];

  auto other = CublasLtProducts::create();
  ASSERT_TRUE(other.ok());
  products = std::move(*other);
  tune();
  check({.m = 8, .n = 8, .k = 8});
  EXPECT_EQ(timed, 10);
  EXPECT_NE(products->choices()[0].find("as measured before"), std::string::npos);
}

TEST_F(CublasLtTuning, WhatIsAddedToIsPreserved) {
  check({.m = 8, .n = 8, .k = 8, .accumulate = true});
  EXPECT_EQ(timed, 10);
}

TEST_F(CublasLtTuning, ADamagedCacheIsMeasuredAnew) {
  check({.m = 8, .n = 8, .k = 8});
  for (const char *text : {"[", "{\"cuBLASLt 13.1.0, a GPU\": 3}", "{}"}) {
    std::ofstream(folder + "/algorithms.json") << text;
    timed = 0;
    auto other = CublasLtProducts::create();
    ASSERT_TRUE(other.ok());
    products = std::move(*other);
    tune();
    check({.m = 8, .n = 8, .k = 8});
    EXPECT_EQ(timed, 10) << text;
  }
}

TEST_F(CublasLt, RefusesWhatTheLibraryCannotBeTold) {
  auto refused = [&](GemmCase gemm, auto change, const char *says) {
    GemmOperandsOnHost operands(gemm);
    GradcGemm changed = operands.gemm();
    change(changed);
    Status status = products->run(changed,
                                  {operands.a(), operands.b(), operands.c(), nullptr, nullptr,
                                   operands.bias(), operands.aux(), operands.workspace()},
                                  nullptr);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(says), std::string::npos) << status.message();
  };
  GemmCase plain{.m = 4, .n = 4, .k = 4};
  refused(plain, [](GradcGemm &g) { g.a.columnStride = 2, g.a.rowStride = 8; }, "contiguous rows");
  refused(plain, [](GradcGemm &g) { std::swap(g.c.rowStride, g.c.columnStride); }, "contiguous");
  refused(plain, [](GradcGemm &g) { g.a.type = GRADC_BF16; }, "two types");
  refused(plain, [](GradcGemm &g) { g.a.type = 7; }, "type 7");
  refused(plain, [](GradcGemm &g) { g.epilogue = 99; }, "epilogue 99");
  refused(plain, [](GradcGemm &g) { g.epilogue = GRADC_BIAS, g.batch[0] = 2; }, "batches");
  GemmCase float8{.m = 16, .n = 16, .k = 16, .typeA = GRADC_F8E4M3, .typeB = GRADC_F8E4M3};
  refused(float8, [](GradcGemm &) {}, "along the depth");
  // What only the library knows is its own error, with the call's name.
  GemmCase odd{
      .m = 8, .n = 8, .k = 8, .typeA = GRADC_F8E4M3, .typeB = GRADC_F8E4M3, .transposeB = true};
  refused(odd, [](GradcGemm &) {}, "has no algorithm for e4m3");
}

TEST(CublasLtLibrary, AnOlderOneIsTriedWhereTheDriverIsTooOld) {
  setenv("GRADC_CUBLASLT_PATH", GRADC_FAKE_CUBLASLT, 1);
  setenv("GRADC_FAKE_CUBLASLT_REFUSALS", "2", 1); // of both versions, then of none
  auto refused = CublasLtProducts::create();
  EXPECT_EQ(refused.status().code(), ExitCode::machineFault);
  EXPECT_NE(refused.status().message().find("cublasLtCreate failed: CUBLAS_STATUS_NOT_INITIALIZED"),
            std::string::npos)
      << refused.status().message();
  EXPECT_NE(refused.status().message().find("needs a driver of CUDA 13"), std::string::npos);
  setenv("GRADC_FAKE_CUBLASLT_REFUSALS", "3", 1); // of the newer version
  auto older = CublasLtProducts::create();
  EXPECT_TRUE(older.ok()) << older.status().message();
  unsetenv("GRADC_FAKE_CUBLASLT_REFUSALS");
  unsetenv("GRADC_CUBLASLT_PATH");
}

TEST(CublasLtLibrary, SaysWhatIsMissing) {
  setenv("GRADC_CUBLASLT_PATH", "/no/such/libcublasLt.so", 1);
  auto library = CublasLtLibrary::open();
  EXPECT_EQ(library.status().code(), ExitCode::machineFault);
  EXPECT_NE(library.status().message().find("/no/such/libcublasLt.so"), std::string::npos);
  setenv("GRADC_CUBLASLT_PATH", "libm.so.6", 1);
  auto other = CublasLtLibrary::open();
  EXPECT_NE(other.status().message().find("has no function cublasLtCreate"), std::string::npos)
      << other.status().message();
  unsetenv("GRADC_CUBLASLT_PATH");
}

} // namespace
} // namespace gradc::rt
