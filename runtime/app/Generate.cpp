// `generate`: continues a prompt token by token with the program `logits`.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "runtime/Random.h"
#include "runtime/Say.h"
#include "runtime/app/Commands.h"
#include "runtime/app/Evaluation.h"
#include "runtime/app/Weights.h"

namespace gradc::rt {
namespace {

constexpr int64_t byteVocab = 256;

/// The prompt as tokens: bytes of the text, or ids as given.
Expected<std::vector<int32_t>> promptTokens(const Metadata &metadata,
                                            const GenerateOptions &options) {
  std::vector<int32_t> tokens = options.promptIds;
  if (options.prompt) {
    if (metadata.vocab > byteVocab)
      return Status::user(fmt::format("--prompt: this model's {} tokens are not bytes; give token "
                                      "ids with --prompt-ids",
                                      metadata.vocab));
    for (unsigned char byte : *options.prompt)
      tokens.push_back(byte);
  }
  if (tokens.empty())
    return Status::user("--prompt: expected at least one character to continue");
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= metadata.vocab)
      return Status::user(fmt::format("prompt: token {} at position {} is not below the "
                                      "vocabulary size {}; leave it out",
                                      tokens[i], i, metadata.vocab));
  return tokens;
}

/// Draws from the softmax of logits / temperature over the k likeliest, with `uniform` in (0, 1).
/// Ties go to the lower token.
int32_t sample(const std::vector<float> &logits, double temperature, int64_t topK, double uniform) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  if (temperature == 0)
    return order.front();
  if (topK > 0 && topK < int64_t(order.size()))
    order.resize(std::size_t(topK));
  std::vector<double> weights;
  for (int32_t token : order)
    weights.push_back(
        std::exp((double(logits[token]) - double(logits[order.front()])) / temperature));
  double rest = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    rest -= weights[i];
    if (rest < 0)
      return order[i];
  }
  return order.back();
}

/// Logits of the token that follows `tokens`, of which the last `seq` are seen.
Status nextLogits(Session &session, const std::vector<int32_t> &tokens,
                  std::vector<float> &logits) {
  int64_t seq = session.metadata().seq;
  std::vector<int32_t> window(std::size_t(seq), 0);
  int64_t seen = std::min<int64_t>(seq, int64_t(tokens.size()));
  std::copy(tokens.end() - seen, tokens.end(), window.begin());
  int32_t position = int32_t(seen - 1);
  GRADC_RETURN_IF_ERROR(session.write("logits.tokens", window.data(), seq * 4));
  GRADC_RETURN_IF_ERROR(session.write("logits.position", &position, 4));
  GRADC_RETURN_IF_ERROR(session.run("logits"));
  GRADC_RETURN_IF_ERROR(session.read("logits.logits", logits.data(), int64_t(logits.size()) * 4));
  for (float value : logits)
    if (!std::isfinite(value))
      return Status::user("the model's logits are not finite; use weights of an earlier step");
  return Status();
}

} // namespace

Status generate(const GradcExecutable &executable, const Metadata &metadata,
                const GenerateOptions &options) {
  GRADC_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, promptTokens(metadata, options));
  GRADC_ASSIGN_OR_RETURN(auto session, Session::open(executable, metadata, options.threads));
  GRADC_RETURN_IF_ERROR(loadWeights(*session, options.weights));
  GRADC_RETURN_IF_ERROR(fillPositions(*session, "logits"));

  bool asText = options.prompt.has_value();
  if (asText)
    say(stdout, "{}", *options.prompt);
  else
    say(stdout, "{}", fmt::join(tokens, ","));
  RandomStream random(options.seed, "generate");
  std::vector<float> logits(std::size_t(metadata.vocab));
  for (int64_t i = 0; i < options.tokens; ++i) {
    GRADC_RETURN_IF_ERROR(nextLogits(*session, tokens, logits));
    int32_t token =
        sample(logits, options.temperature, options.topK, random.uniforms(uint64_t(i))[0]);
    tokens.push_back(token);
    if (asText)
      std::fputc(token, stdout);
    else
      say(stdout, ",{}", token);
    std::fflush(stdout);
  }
  say(stdout, "\n");
  return Status();
}

} // namespace gradc::rt
