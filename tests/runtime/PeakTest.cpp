// The measured peak: plausible numbers, and an error for a wrong number of threads.
#include "runtime/cpu/Peak.h"

#include <gtest/gtest.h>

#include <string>

using namespace gradc::rt;

namespace {

TEST(Peak, RatesArePlausible) {
  Expected<PeakRates> rates = measurePeak(1);
  ASSERT_TRUE(rates.ok()) << rates.status().message();
  EXPECT_EQ(rates->threads, 1);
  EXPECT_NE(std::string(rates->isa), "");
  // Wide bounds, for sanitizers and busy machines: they catch a loop that was optimised away, and
  // seconds taken for nanoseconds. No core does 64 operations of 16 lanes at 8 GHz.
  EXPECT_GT(rates->flopsPerSecond, 1e7);
  EXPECT_LT(rates->flopsPerSecond, 64.0 * 16 * 8e9);
  EXPECT_GT(rates->bytesPerSecond, 1e7);
  EXPECT_LT(rates->bytesPerSecond, 4e12);
}

TEST(Peak, NoThreadsIsAUserError) {
  for (int threads : {0, -1}) {
    Expected<PeakRates> rates = measurePeak(threads);
    ASSERT_FALSE(rates.ok());
    EXPECT_EQ(rates.status().code(), ExitCode::userError);
    EXPECT_NE(rates.status().message().find("use at least 1"), std::string::npos);
  }
}

} // namespace
