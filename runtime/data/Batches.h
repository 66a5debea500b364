// Turns tokens into training and validation batches.
//
// A batch is two row-major [batch, seq] arrays of int32: the input tokens and the targets, which
// are the same window shifted by one. What batch number k holds is a pure function of (options, k):
// a cursor, the number of microbatches consumed, is all the state a resumed run needs.
#pragma once

#include "runtime/Status.h"
#include "runtime/data/TokenSource.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace gradc::rt {

enum class DataOrder {
  /// Each epoch visits every window of seq + 1 tokens that begins at a multiple of seq once, in an
  /// order keyed by (seed, epoch).
  shuffled,
  /// Batch k reads batch*seq + 1 tokens from k*batch*seq on; when they no longer fit it begins
  /// again at 0.
  sequential,
};

struct BatchOptions {
  uint64_t batch = 1; ///< rows
  uint64_t seq = 1;   ///< tokens a row
  DataOrder order = DataOrder::shuffled;
  uint64_t seed = 42;
  int64_t vocabSize = 256; ///< ids at or above it are refused
  /// The token that ends a document: its target, the next document's first token, becomes -1, which
  /// the loss ignores. -1: none.
  int64_t separator = -1;
};

/// Endless training batches, prepared ahead by a thread of its own. `next` and `seek` are for one
/// consumer thread.
class BatchLoader {
public:
  /// Fails when the source is too short for one window (shuffled) or one batch (sequential).
  static Expected<std::unique_ptr<BatchLoader>> create(std::shared_ptr<const TokenSource> source,
                                                       BatchOptions options, uint64_t cursor = 0);
  ~BatchLoader();

  /// Copies out the batch at the cursor and advances it. On an error, e.g. a token beyond the
  /// vocab, the cursor stays and the same error comes again.
  Status next(int32_t *tokens, int32_t *targets);
  /// Makes `cursor` the next batch.
  void seek(uint64_t cursor);
  /// The number of batches consumed.
  uint64_t cursor() const { return cursor_; }

  /// Reads batch `index` directly, on the calling thread; any thread may call it.
  Status batchAt(uint64_t index, int32_t *tokens, int32_t *targets) const;
  /// What the batches are of.
  const TokenSource &source() const { return *source_; }
  /// Windows (shuffled) or batches (sequential) an epoch.
  uint64_t epochSize() const { return epochSize_; }

private:
  /// A batch made ahead of time, or the reason why it could not be.
  struct Prepared {
    std::vector<int32_t> tokens, targets;
    Status status;
  };

  BatchLoader(std::shared_ptr<const TokenSource> source, BatchOptions options, uint64_t epochSize,
              uint64_t cursor);
  void prefetch();
  Status readRow(uint64_t begin, int32_t *tokens, int32_t *targets) const;

  const std::shared_ptr<const TokenSource> source_;
  const BatchOptions options_;
  const uint64_t epochSize_;
  uint64_t cursor_;

  std::mutex mutex_;                 ///< guards what follows
  std::condition_variable wake_;     ///< to the thread: there is room, or a seek, or the end
  std::condition_variable prepared_; ///< to the consumer: the queue is no longer empty
  std::deque<Prepared> queue_;
  std::vector<Prepared> spare_; ///< buffers for reuse
  uint64_t nextIndex_;          ///< the batch to prepare next
  uint64_t generation_ = 0;     ///< counts seeks: a batch begun before one is dropped
  bool stop_ = false;
  std::thread thread_; ///< last: everything it uses exists before and after it
};

/// One pass over a file, in order: windows of seq tokens, so that each of the size - 1 predictions
/// is counted exactly once. What is missing in the last window and the last batch is padded with
/// token 0 and target -1, which the loss ignores.
class ValidationBatches {
public:
  /// `options.order` and `options.seed` play no part.
  static Expected<ValidationBatches> create(std::shared_ptr<const TokenSource> source,
                                            BatchOptions options);
  /// The number of batches in the pass.
  uint64_t count() const { return count_; }
  /// The number of predictions in the pass, those across documents included.
  uint64_t predictions() const { return source_->size() - 1; }
  /// Fills one batch; returns how many of its targets are valid: the weight of its mean loss.
  Expected<uint64_t> batchAt(uint64_t index, int32_t *tokens, int32_t *targets) const;

private:
  ValidationBatches(std::shared_ptr<const TokenSource> source, BatchOptions options, uint64_t count)
      : source_(std::move(source)), options_(options), count_(count) {}

  std::shared_ptr<const TokenSource> source_;
  BatchOptions options_;
  uint64_t count_;
};

} // namespace gradc::rt
