// Which products --gemm auto leaves to the library, with times that the test makes up; what its
// cache keeps; and that a product can be timed at all.
#include "tools/driver/ProductChoice.h"
#include "runtime/cpu/ThreadPool.h"
#include "tests/numerics/GemmHarness.h"

#include "llvm/Support/FileSystem.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

namespace gradc {
namespace {

codegen::GemmSpec product(int64_t m) { return codegen::makeSpec(m, 7, 5, false, false); }

class ProductChoiceTest : public testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> path;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("gradc-products", path));
    folder = path.str().str();
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  /// A timer that knows the times and counts its calls.
  ProductChoice choice(const std::string &machine = "this") {
    return {[this](const codegen::GemmSpec &spec) -> llvm::Expected<ProductSeconds> {
              ++timed;
              auto found = times.find(spec.m);
              if (found == times.end())
                return llvm::createStringError("no memory");
              return found->second;
            },
            ProductCache(folder, machine)};
  }

  /// A choice of two products in the folder, saved; the number that had to be timed.
  int timedFor(const std::string &machine = "this") {
    timed = 0;
    ProductChoice chosen = choice(machine);
    EXPECT_TRUE(chosen.prefersGenerated(product(2)));
    EXPECT_FALSE(chosen.prefersGenerated(product(3)));
    EXPECT_EQ(llvm::toString(chosen.save()), "");
    return timed;
  }

  std::string file() const { return folder + "/products.json"; }
  void write(const std::string &text) const { std::ofstream(file()) << text; }
  std::string contents() const {
    std::stringstream text;
    text << std::ifstream(file()).rdbuf();
    return text.str();
  }

  std::string folder;
  std::map<int64_t, ProductSeconds> times = {{2, {0.001, 0.002}}, {3, {0.1 + 0.2, 0.1}}};
  int timed = 0;
};

TEST_F(ProductChoiceTest, TheFasterOneIsChosen) {
  times = {{2, {1, 2}}, {3, {2, 1}}, {4, {1.019, 1}}, {5, {1.021, 1}}, {6, {1, 1}}};
  ProductChoice chosen = choice();
  for (auto [m, generated] : {std::pair(2, true), {3, false}, {4, true}, {5, false}, {6, true}})
    EXPECT_EQ(chosen.prefersGenerated(product(m)), generated) << m;
  EXPECT_EQ(chosen.summary(),
            "5 shapes: 3 generated, 2 library (5 measured now, 0 from " + file() + ")");
  EXPECT_EQ(chosen.lines()[1], "3 x 7 x 5: library (generated 2e+03 ms, library 1e+03 ms)");
  EXPECT_EQ(chosen.failure(), "");
}

TEST_F(ProductChoiceTest, EqualShapesAreTimedOnce) {
  ProductChoice chosen = choice();
  for (int i = 0; i < 3; ++i)
    EXPECT_FALSE(chosen.prefersGenerated(product(3)));
  EXPECT_EQ(timed, 1);
  EXPECT_EQ(chosen.lines().size(), 1u);
}

TEST_F(ProductChoiceTest, WhatTimesDependOnTellsProductsApart) {
  std::vector<codegen::GemmSpec> specs = codegen::allTransposes(2, 7, 5);
  for (codegen::GemmSpec spec : codegen::allTransposes(2, 7, 5, 0, 3))
    specs.push_back(spec);
  specs.push_back(product(2));
  specs.back().accumulate = true;
  specs.push_back(codegen::makeSpec(2, 5, 7, false, false));
  ProductChoice chosen = choice();
  for (const codegen::GemmSpec &spec : specs)
    EXPECT_TRUE(chosen.prefersGenerated(spec));
  EXPECT_EQ(timed, static_cast<int>(specs.size()));
}

TEST_F(ProductChoiceTest, WhatCannotBeTimedIsGenerated) {
  times.clear();
  ProductChoice chosen = choice();
  EXPECT_TRUE(chosen.prefersGenerated(product(2)));
  EXPECT_TRUE(chosen.prefersGenerated(product(3)));
  EXPECT_EQ(chosen.failure(), "product 2 x 7 x 5 is generated, as it cannot be timed: no memory");
  EXPECT_NE(chosen.summary().find("2 not measured"), std::string::npos);
  EXPECT_EQ(llvm::toString(chosen.save()), "");
  EXPECT_FALSE(llvm::sys::fs::exists(file())) << "nothing was measured";
}

TEST_F(ProductChoiceTest, NothingAskedIsSaid) {
  EXPECT_EQ(choice().summary(), "none that the library could make: all are generated");
}

TEST_F(ProductChoiceTest, TheCacheSparesTheTiming) {
  ProductChoice first = choice();
  first.prefersGenerated(product(2)), first.prefersGenerated(product(3));
  ASSERT_EQ(llvm::toString(first.save()), "");
  timed = 0;
  ProductChoice second = choice();
  EXPECT_TRUE(second.prefersGenerated(product(2)));
  EXPECT_FALSE(second.prefersGenerated(product(3)));
  EXPECT_EQ(timed, 0);
  EXPECT_EQ(second.lines(), first.lines());
  EXPECT_EQ(second.summary(),
            "2 shapes: 1 generated, 1 library (0 measured now, 2 from " + file() + ")");
  EXPECT_EQ(ProductCache(folder, "this").find("3 x 7 x 5"), times[3]) << "to the bit";
}

TEST_F(ProductChoiceTest, TimesOfOtherMachinesAreOthers) {
  EXPECT_EQ(timedFor("this"), 2);
  EXPECT_EQ(timedFor("another version"), 2);
  EXPECT_EQ(timedFor("this"), 0);
  EXPECT_EQ(timedFor("another version"), 0);
}

TEST_F(ProductChoiceTest, ADamagedFileIsReplaced) {
  timedFor();
  const std::string whole = contents();
  auto entry = [](const std::string &times) {
    return "{\"this\": {\"2 x 7 x 5\": " + times + ", \"3 x 7 x 5\": " + times + "}}";
  };
  for (const std::string &text :
       {std::string(), whole.substr(0, whole.size() / 2), std::string(1 << 20, '['),
        std::string("\xff\xfe\0\1", 4), std::string("[1]"), std::string("null"),
        std::string("{\"this\": 3}"), std::string("{\"this\": {}}"), entry("3"), entry("{}"),
        entry("{\"generated\": 1}"), entry("{\"generated\": 0, \"library\": 1}"),
        entry("{\"generated\": 1, \"library\": -1}"),
        entry("{\"generated\": 1, \"library\": \"1\"}"),
        entry("{\"generated\": 1, \"library\": null}"),
        entry("{\"generated\": 1e999, \"library\": 1}")}) {
    SCOPED_TRACE(text.substr(0, 60));
    write(text);
    EXPECT_EQ(timedFor(), 2);
    EXPECT_EQ(contents(), whole);
    EXPECT_EQ(timedFor(), 0);
  }
}

TEST_F(ProductChoiceTest, TwoCompilesAtOnceKeepBothTimes) {
  ProductChoice one = choice(), other = choice();
  one.prefersGenerated(product(2));
  other.prefersGenerated(product(3));
  EXPECT_EQ(llvm::toString(one.save()), "");
  EXPECT_EQ(llvm::toString(other.save()), "");
  EXPECT_EQ(timedFor(), 0);
  std::error_code error;
  auto left = llvm::sys::fs::directory_iterator(folder, error);
  EXPECT_EQ(left->path(), file());
  EXPECT_EQ(left.increment(error), llvm::sys::fs::directory_iterator()) << "a temporary file stays";
}

TEST_F(ProductChoiceTest, AFolderThatCannotBeIsAnErrorOfSavingAlone) {
  write("{}");
  folder = file(); // a file is no folder, to the superuser neither
  ProductChoice chosen = choice();
  EXPECT_FALSE(chosen.prefersGenerated(product(3)));
  std::string error = llvm::toString(chosen.save());
  EXPECT_NE(error.find("cannot be written"), std::string::npos) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  folder.clear();
  ProductChoice homeless = choice();
  EXPECT_FALSE(homeless.prefersGenerated(product(3)));
  EXPECT_NE(llvm::toString(homeless.save()).find("set GRADC_CACHE_DIR"), std::string::npos);
}

TEST(ProductTimer, TimesEveryKindOfProduct) {
  codegen::CpuTarget target = codegen::CpuTarget::host();
  codegen::GemmSpec batched = codegen::makeSpec(40, 30, 20, true, false);
  batched.batch = 3;
  batched.accumulate = true;
  codegen::GemmSpec packed = codegen::makeSpec(512, 256, 256, false, true); // has a workspace
  for (const codegen::GemmSpec &spec : {product(1), batched, packed}) {
    llvm::Expected<ProductSeconds> seconds =
        timeProduct(spec, target, std::min(2, rt::availableProcessors()));
    ASSERT_TRUE(bool(seconds)) << llvm::toString(seconds.takeError());
    for (double each : {seconds->generated, seconds->library})
      EXPECT_TRUE(each > 0 && each < 10) << each;
  }
}

TEST(ProductTimer, TooLargeAProductIsAnError) {
  codegen::GemmSpec spec = codegen::makeSpec(int64_t{1} << 22, int64_t{1} << 22, 1, false, false);
  llvm::Expected<ProductSeconds> seconds = timeProduct(spec, codegen::CpuTarget::host(), 1);
  ASSERT_FALSE(bool(seconds));
  std::string why = llvm::toString(seconds.takeError());
  EXPECT_NE(why.find("the matrices of a timed product"), std::string::npos) << why;
}

} // namespace
} // namespace gradc
