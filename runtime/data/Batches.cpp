// Batch arithmetic, the prefetch thread and the validation pass.
#include "runtime/data/Batches.h"

#include "runtime/data/Permutation.h"

#include <algorithm>
#include <fmt/format.h>
#include <system_error>

namespace gradc::rt {

/// Batches prepared ahead: enough to hide a slow read, little enough to cost no memory.
static constexpr size_t queueDepth = 4;

/// batch * seq, refused when zero or absurd.
static Expected<uint64_t> tokensPerBatch(const BatchOptions &options) {
  uint64_t tokens = 0;
  if (options.batch == 0 || options.seq == 0 ||
      __builtin_mul_overflow(options.batch, options.seq, &tokens) || tokens > uint64_t(1) << 40)
    return Status::user(fmt::format("a batch of {} rows of {} tokens is not possible; choose both "
                                    "from 1 to what memory holds",
                                    options.batch, options.seq));
  return tokens;
}

/// Takes the targets away from tokens that end a document; returns how many.
static uint64_t ignoreSeparators(const BatchOptions &options, uint64_t count, const int32_t *tokens,
                                 int32_t *targets) {
  uint64_t ignored = 0;
  for (uint64_t i = 0; i < count; ++i)
    if (int64_t(tokens[i]) == options.separator) {
      targets[i] = -1;
      ++ignored;
    }
  return ignored;
}

static Status tooShort(const TokenSource &source, uint64_t needed, std::string_view purpose,
                       std::string_view mend) {
  return Status::user(fmt::format("{}: holds {} tokens but {} are needed for {}; {}", source.path(),
                                  source.size(), needed, purpose, mend));
}

Expected<std::unique_ptr<BatchLoader>>
BatchLoader::create(std::shared_ptr<const TokenSource> source, BatchOptions options,
                    uint64_t cursor) {
  GRADC_ASSIGN_OR_RETURN(uint64_t perBatch, tokensPerBatch(options));
  bool shuffled = options.order == DataOrder::shuffled;
  uint64_t unit = shuffled ? options.seq : perBatch;
  if (source->size() <= unit)
    return tooShort(*source, unit + 1,
                    shuffled ? fmt::format("one sequence of length {} and its targets", unit)
                             : fmt::format("one batch of {} x {}", options.batch, options.seq),
                    "give more data, a shorter --seq or a smaller --micro-batch");
  uint64_t epochSize = (source->size() - 1) / unit;
  std::unique_ptr<BatchLoader> loader(
      new BatchLoader(std::move(source), options, epochSize, cursor));
  try {
    loader->thread_ = std::thread(&BatchLoader::prefetch, loader.get());
  } catch (const std::system_error &error) {
    return Status::machine(fmt::format("cannot start the data thread: {}; raise the limit on "
                                       "processes (ulimit -u)",
                                       error.code().message()));
  }
  return loader;
}

BatchLoader::BatchLoader(std::shared_ptr<const TokenSource> source, BatchOptions options,
                         uint64_t epochSize, uint64_t cursor)
    : source_(std::move(source)), options_(options), epochSize_(epochSize), cursor_(cursor),
      nextIndex_(cursor) {}

BatchLoader::~BatchLoader() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable())
    thread_.join();
}

Status BatchLoader::readRow(uint64_t begin, int32_t *tokens, int32_t *targets) const {
  // The inputs and the last target cover the window; the other targets are inputs shifted.
  uint64_t seq = options_.seq;
  GRADC_RETURN_IF_ERROR(source_->read(begin, seq, tokens, options_.vocabSize));
  std::copy(tokens + 1, tokens + seq, targets);
  GRADC_RETURN_IF_ERROR(source_->read(begin + seq, 1, targets + seq - 1, options_.vocabSize));
  ignoreSeparators(options_, seq, tokens, targets);
  return {};
}

Status BatchLoader::batchAt(uint64_t index, int32_t *tokens, int32_t *targets) const {
  for (uint64_t row = 0; row < options_.batch; ++row) {
    uint64_t window = (index % epochSize_) * options_.batch + row;
    if (options_.order == DataOrder::shuffled) {
      uint64_t sequence = index * options_.batch + row;
      uint64_t epoch = sequence / epochSize_;
      window = Permutation(epochSize_, options_.seed, epoch)(sequence % epochSize_);
    }
    uint64_t offset = row * options_.seq;
    GRADC_RETURN_IF_ERROR(readRow(window * options_.seq, tokens + offset, targets + offset));
  }
  return {};
}

void BatchLoader::prefetch() {
  std::unique_lock lock(mutex_);
  while (true) {
    // After an error nothing follows until a seek: the queue's last entry holds it.
    wake_.wait(lock, [&] {
      return stop_ || queue_.empty() || (queue_.size() < queueDepth && queue_.back().status.ok());
    });
    if (stop_)
      return;
    uint64_t index = nextIndex_++, generation = generation_;
    Prepared batch;
    if (!spare_.empty()) {
      batch = std::move(spare_.back());
      spare_.pop_back();
    }
    lock.unlock();
    batch.tokens.resize(options_.batch * options_.seq);
    batch.targets.resize(options_.batch * options_.seq);
    batch.status = batchAt(index, batch.tokens.data(), batch.targets.data());
    lock.lock();
    if (generation != generation_)
      continue;
    queue_.push_back(std::move(batch));
    prepared_.notify_one();
  }
}

Status BatchLoader::next(int32_t *tokens, int32_t *targets) {
  std::unique_lock lock(mutex_);
  prepared_.wait(lock, [&] { return !queue_.empty(); });
  if (!queue_.front().status.ok())
    return queue_.front().status;
  Prepared batch = std::move(queue_.front());
  queue_.pop_front();
  ++cursor_;
  lock.unlock();
  wake_.notify_one();

  std::copy(batch.tokens.begin(), batch.tokens.end(), tokens);
  std::copy(batch.targets.begin(), batch.targets.end(), targets);
  lock.lock();
  spare_.push_back(std::move(batch));
  return {};
}

void BatchLoader::seek(uint64_t cursor) {
  {
    std::lock_guard lock(mutex_);
    ++generation_;
    queue_.clear();
    cursor_ = nextIndex_ = cursor;
  }
  wake_.notify_one();
}

Expected<ValidationBatches> ValidationBatches::create(std::shared_ptr<const TokenSource> source,
                                                      BatchOptions options) {
  GRADC_ASSIGN_OR_RETURN(uint64_t perBatch, tokensPerBatch(options));
  if (source->size() < 2)
    return tooShort(*source, 2, "one prediction", "give more data");
  uint64_t count = (source->size() - 1 + perBatch - 1) / perBatch;
  return ValidationBatches(std::move(source), options, count);
}

Expected<uint64_t> ValidationBatches::batchAt(uint64_t index, int32_t *tokens,
                                              int32_t *targets) const {
  // Rows follow one another in the file, so a batch is one stretch of it, cut short at the end.
  uint64_t perBatch = options_.batch * options_.seq;
  uint64_t begin = std::min(index, count_) * perBatch;
  uint64_t valid = begin < predictions() ? std::min(perBatch, predictions() - begin) : 0;
  std::fill(tokens + valid, tokens + perBatch, 0);
  std::fill(targets + valid, targets + perBatch, -1);
  GRADC_RETURN_IF_ERROR(
      source_->read(begin < predictions() ? begin : 0, valid, tokens, options_.vocabSize));
  GRADC_RETURN_IF_ERROR(
      source_->read(begin < predictions() ? begin + 1 : 0, valid, targets, options_.vocabSize));
  return valid - ignoreSeparators(options_, valid, tokens, targets);
}

} // namespace gradc::rt
