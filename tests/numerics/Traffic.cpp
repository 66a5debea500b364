// See Traffic.h.
#include "tests/numerics/Traffic.h"

#include <gtest/gtest.h>

namespace gradc::test {

void expectTraffic(const std::vector<rt::EmulatedTraffic> &seen, const KernelWork &stated) {
  ASSERT_EQ(seen.size(), stated.buffers.size());
  // Results may lie between one another, so that which of them was written is not known.
  int64_t written = 0, saidWritten = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "bytes of buffer " << i);
    const BufferTraffic &said = stated.buffers[i];
    if (said.atMost) {
      EXPECT_TRUE(said.cached || seen[i].read <= said.read) << seen[i].read << " of " << said.read;
      EXPECT_LE(seen[i].written, said.written);
      continue;
    }
    written += seen[i].written;
    saidWritten += said.written;
    // A number of the launch may be one that the kernel does without (the first row, where flat).
    bool isNumber = said.read <= 4;
    if (said.cached)
      EXPECT_TRUE(seen[i].read >= said.read || (isNumber && seen[i].read == 0))
          << seen[i].read << " of " << said.read;
    else
      EXPECT_EQ(seen[i].read, said.read);
  }
  EXPECT_EQ(written, saidWritten);
}

} // namespace gradc::test
