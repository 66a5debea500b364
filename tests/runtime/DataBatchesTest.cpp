// Batches: order, coverage, exact resume, errors from the prefetch thread, the validation pass.
#include "runtime/data/Batches.h"

#include "runtime/data/Permutation.h"
#include "tests/runtime/DataFixture.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace gradc::rt {
namespace {

struct Batch {
  std::vector<int32_t> tokens, targets;
  bool operator==(const Batch &) const = default;
};

class DataBatches : public DataFixture {
protected:
  /// A file whose token at position p is p; a new one each time, for an older one may be mapped.
  std::shared_ptr<const TokenSource> counting(uint16_t size) {
    std::vector<uint16_t> ids(size);
    std::iota(ids.begin(), ids.end(), uint16_t(0));
    auto source = openTokens(write(std::to_string(++files_) + ".bin",
                                   {reinterpret_cast<const char *>(ids.data()), ids.size() * 2}));
    EXPECT_TRUE(source.ok()) << source.status().message();
    return std::move(*source);
  }

  static std::unique_ptr<BatchLoader> loader(std::shared_ptr<const TokenSource> source,
                                             BatchOptions options, uint64_t cursor = 0) {
    auto loader = BatchLoader::create(std::move(source), options, cursor);
    EXPECT_TRUE(loader.ok()) << loader.status().message();
    return std::move(*loader);
  }

  static Batch next(BatchLoader &loader, const BatchOptions &options) {
    Batch batch{std::vector<int32_t>(options.batch * options.seq),
                std::vector<int32_t>(options.batch * options.seq)};
    EXPECT_TRUE(loader.next(batch.tokens.data(), batch.targets.data()).ok());
    return batch;
  }

private:
  int files_ = 0;
};

TEST(DataPermutation, IsABijectionKeyedBySeedAndEpoch) {
  for (uint64_t size : {1u, 2u, 3u, 4u, 5u, 17u, 64u, 1000u}) {
    std::set<uint64_t> seen;
    Permutation permutation(size, 42, 0);
    for (uint64_t i = 0; i < size; ++i)
      seen.insert(permutation(i));
    EXPECT_EQ(seen.size(), size);
    EXPECT_EQ(*seen.rbegin(), size - 1);
  }
  auto list = [](uint64_t seed, uint64_t epoch) {
    std::vector<uint64_t> order;
    for (uint64_t i = 0; i < 100; ++i)
      order.push_back(Permutation(100, seed, epoch)(i));
    return order;
  };
  EXPECT_EQ(list(1, 1), list(1, 1));
  EXPECT_NE(list(1, 1), list(2, 1));
  EXPECT_NE(list(1, 1), list(1, 2));
  EXPECT_NE(list(1, 2), list(2, 1));
}

TEST(DataPermutation, SpreadsEveryItemOverAllPositions) {
  constexpr uint64_t size = 10, epochs = 20000;
  std::map<std::pair<uint64_t, uint64_t>, double> counts;
  for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
    Permutation permutation(size, 7, epoch);
    for (uint64_t i = 0; i < size; ++i)
      counts[{i, permutation(i)}] += 1;
  }
  // Binomial with mean 2000 and deviation 42: seven deviations leave no room for bias or chance.
  ASSERT_EQ(counts.size(), size * size);
  for (const auto &[key, count] : counts)
    EXPECT_NEAR(count, double(epochs) / size, 300);
}

TEST(DataPermutation, OrderIsFixedForAllTime) {
  // Resuming with a later build must see the same order: these values are a promise.
  std::vector<uint64_t> order;
  for (uint64_t i = 0; i < 8; ++i)
    order.push_back(Permutation(8, 42, 0)(i));
  EXPECT_EQ(order, (std::vector<uint64_t>{5, 7, 6, 3, 4, 0, 1, 2}));
  EXPECT_LT(Permutation(UINT64_MAX, 1, 1)(12345), UINT64_MAX);
}

TEST_F(DataBatches, SequentialAdvancesAndWraps) {
  BatchOptions options{2, 3, DataOrder::sequential, 42, 65536};
  auto source = counting(19); // 6 tokens a batch: three batches and one token more
  auto batches = loader(source, options);
  EXPECT_EQ(batches->epochSize(), 3u);
  for (int32_t expected : {0, 6, 12, 0, 6}) {
    Batch batch = next(*batches, options);
    for (int32_t i = 0; i < 6; ++i) {
      EXPECT_EQ(batch.tokens[i], expected + i);
      EXPECT_EQ(batch.targets[i], expected + i + 1);
    }
  }
  // One token less and the third batch lacks its last target.
  EXPECT_EQ(loader(counting(18), options)->epochSize(), 2u);
}

TEST_F(DataBatches, ShuffledEpochVisitsEachWindowOnce) {
  BatchOptions options{1, 4, DataOrder::shuffled, 42, 65536};
  auto batches = loader(counting(42), options); // windows at 0, 4, ..., 36; tokens 40, 41 remain
  ASSERT_EQ(batches->epochSize(), 10u);
  std::vector<std::vector<int32_t>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int32_t> begins;
    for (int i = 0; i < 10; ++i) {
      Batch batch = next(*batches, options);
      begins.push_back(batch.tokens[0]);
      for (int t = 0; t < 4; ++t) {
        EXPECT_EQ(batch.tokens[t], batch.tokens[0] + t);
        EXPECT_EQ(batch.targets[t], batch.tokens[t] + 1);
      }
    }
    epochs.push_back(begins);
    std::sort(begins.begin(), begins.end());
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(begins[i], 4 * i);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST_F(DataBatches, RowsAreTheSameHoweverTheyAreBatched) {
  auto source = counting(100);
  BatchOptions one{1, 4, DataOrder::shuffled, 5, 65536}, three{3, 4, DataOrder::shuffled, 5, 65536};
  auto a = loader(source, one), b = loader(source, three);
  for (int batch = 0; batch < 20; ++batch) { // crosses an epoch of 24 windows
    std::vector<int32_t> rows;
    for (int row = 0; row < 3; ++row) {
      Batch single = next(*a, one);
      rows.insert(rows.end(), single.tokens.begin(), single.tokens.end());
    }
    EXPECT_EQ(rows, next(*b, three).tokens);
  }
}

TEST_F(DataBatches, ResumeIsExact) {
  auto source = counting(500);
  for (DataOrder order : {DataOrder::shuffled, DataOrder::sequential}) {
    BatchOptions options{2, 7, order, 9, 65536};
    auto whole = loader(source, options);
    std::vector<Batch> expected;
    for (int i = 0; i < 60; ++i)
      expected.push_back(next(*whole, options));
    EXPECT_EQ(whole->cursor(), 60u);

    auto resumed = loader(source, options, 23);
    for (int i = 23; i < 60; ++i)
      EXPECT_EQ(next(*resumed, options), expected[i]);
    for (uint64_t cursor : {0u, 59u, 30u, 31u}) {
      resumed->seek(cursor);
      EXPECT_EQ(resumed->cursor(), cursor);
      EXPECT_EQ(next(*resumed, options), expected[cursor]);
    }
  }
}

TEST_F(DataBatches, ErrorsOfTheThreadSurfaceAndStay) {
  BatchOptions options{1, 4, DataOrder::sequential, 42, 10}; // token 10 is in the third batch
  auto batches = loader(counting(30), options);
  next(*batches, options);
  next(*batches, options);
  std::vector<int32_t> tokens(4), targets(4);
  for (int tries = 0; tries < 2; ++tries)
    EXPECT_ERROR(batches->next(tokens.data(), targets.data()), ExitCode::userError, "1.bin",
                 "token id 10", "position 10");
  EXPECT_EQ(batches->cursor(), 2u);
  batches->seek(0);
  EXPECT_EQ(next(*batches, options).tokens[0], 0);
}

TEST_F(DataBatches, LastTargetIsCheckedAgainstTheVocab) {
  BatchOptions options{1, 4, DataOrder::sequential, 42, 4}; // inputs 0 to 3, targets 1 to 4
  auto batches = loader(counting(5), options);
  std::vector<int32_t> tokens(4), targets(4);
  EXPECT_ERROR(batches->next(tokens.data(), targets.data()), ExitCode::userError, "position 4");
}

TEST_F(DataBatches, ShortSourcesAndImpossibleShapesAreRefused) {
  auto source = counting(10);
  auto create = [&](uint64_t batch, uint64_t seq, DataOrder order) {
    return BatchLoader::create(source, {batch, seq, order, 1, 65536}).status();
  };
  EXPECT_TRUE(create(3, 3, DataOrder::sequential).ok());
  EXPECT_ERROR(create(5, 2, DataOrder::sequential), ExitCode::userError, "10 tokens", "11 are");
  EXPECT_TRUE(create(50, 9, DataOrder::shuffled).ok());
  EXPECT_ERROR(create(1, 10, DataOrder::shuffled), ExitCode::userError, "11 are needed");
  EXPECT_ERROR(create(0, 1, DataOrder::shuffled), ExitCode::userError, "0 rows");
  EXPECT_ERROR(create(uint64_t(1) << 40, uint64_t(1) << 40, DataOrder::shuffled),
               ExitCode::userError, "not possible");
}

TEST_F(DataBatches, ValidationCountsEachPredictionOnce) {
  for (uint16_t size : {2, 3, 4, 5, 12, 13, 14, 24, 25, 26}) {
    auto source = counting(size);
    BatchOptions options{2, 3, DataOrder::shuffled, 42, 65536};
    auto batches = ValidationBatches::create(source, options);
    ASSERT_OK(batches.status());
    std::vector<int32_t> tokens(6), targets(6), predicted;
    uint64_t valid = 0;
    for (uint64_t i = 0; i < batches->count(); ++i) {
      auto count = batches->batchAt(i, tokens.data(), targets.data());
      ASSERT_OK(count.status());
      EXPECT_GT(*count, 0u);
      valid += *count;
      EXPECT_EQ(std::count_if(targets.begin(), targets.end(), [](int32_t t) { return t >= 0; }),
                static_cast<int64_t>(*count));
      for (int at = 0; at < 6; ++at) {
        if (targets[at] == -1) {
          EXPECT_EQ(tokens[at], 0);
          continue;
        }
        EXPECT_EQ(targets[at], tokens[at] + 1);
        predicted.push_back(targets[at]);
      }
    }
    EXPECT_EQ(valid, size - 1u);
    EXPECT_EQ(valid, batches->predictions());
    std::vector<int32_t> expected(size - 1);
    std::iota(expected.begin(), expected.end(), 1);
    EXPECT_EQ(predicted, expected);
  }
}

/// A separator's target, wherever in a row it stands, is ignored, and counted nowhere.
TEST_F(DataBatches, SeparatorsHaveNoTarget) {
  std::vector<uint16_t> ids{5, 1, 5, 5, 2, 3, 5, 4, 6};
  auto opened = openTokens(
      write("documents.bin", {reinterpret_cast<const char *>(ids.data()), ids.size() * 2}));
  ASSERT_OK(opened.status());
  std::shared_ptr<const TokenSource> source = std::move(*opened);
  BatchOptions options{2, 4, DataOrder::sequential, 42, 256, 5};
  const Batch expected{{5, 1, 5, 5, 2, 3, 5, 4}, {-1, 5, -1, -1, 3, 5, -1, 6}};
  EXPECT_EQ(next(*loader(source, options), options), expected);
  auto validation = ValidationBatches::create(source, options);
  ASSERT_OK(validation.status());
  Batch batch{std::vector<int32_t>(8), std::vector<int32_t>(8)};
  auto valid = validation->batchAt(0, batch.tokens.data(), batch.targets.data());
  ASSERT_OK(valid.status());
  EXPECT_EQ(*valid, 4u);
  EXPECT_EQ(batch, expected);
}

TEST_F(DataBatches, ValidationReportsBadTokens) {
  auto batches = ValidationBatches::create(counting(9), {2, 3, DataOrder::shuffled, 42, 8});
  ASSERT_OK(batches.status());
  std::vector<int32_t> tokens(6), targets(6);
  EXPECT_TRUE(batches->batchAt(0, tokens.data(), targets.data()).ok());
  EXPECT_ERROR(batches->batchAt(1, tokens.data(), targets.data()).status(), ExitCode::userError,
               "position 8");
}

} // namespace
} // namespace gradc::rt
