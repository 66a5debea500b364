// --init-weights: names, shapes, types and ties.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "AppRun.h"
#include "ToyExecutable.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/checkpoint/SafetensorsWriter.h"

namespace gradc::rt {
namespace {

struct Stored {
  FileDtype dtype = FileDtype::f32;
  std::vector<int64_t> shape{toyVocab, toyWidth};
  std::string bytes;
};

std::string floatBytes(int64_t count, unsigned seed) {
  std::string bytes(std::size_t(count) * 4, '\0');
  for (int64_t i = 0; i < count; ++i) {
    float value = std::sin(float(i) * 0.37f + float(seed));
    std::memcpy(bytes.data() + i * 4, &value, 4);
  }
  return bytes;
}

class AppWeightsTest : public testing::Test {
protected:
  AppWeightsTest() {
    writeFile(data, std::string(300, 'a') + std::string(300, 'b'));
    tensors["wte.weight"].bytes = floatBytes(toyVocab * toyWidth, 1);
    tensors["head.weight"].bytes = floatBytes(toyVocab * toyWidth, 2);
  }

  AppResult evaluate() {
    std::vector<TensorView> views;
    for (auto &[name, stored] : tensors)
      views.push_back({name, stored.dtype, stored.shape, stored.bytes.data()});
    EXPECT_TRUE(writeSafetensors(folder.path("w.safetensors"), views).ok());
    return runToy(
        {"eval", "--data", data, "--init-weights", folder.path("w.safetensors"), "--json"});
  }
  void expectLoads() {
    auto result = evaluate();
    ASSERT_EQ(result.exitCode, 0) << result.err;
    double loss = nlohmann::json::parse(result.out)["loss"];
    if (std::isnan(expected))
      expected = loss;
    EXPECT_EQ(loss, expected);
  }
  void expectRefusal(const std::string &part) {
    auto result = evaluate();
    EXPECT_EQ(result.exitCode, 1);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  }
  void rename(const std::string &from, const std::string &to) {
    auto node = tensors.extract(from);
    node.key() = to;
    tensors.insert(std::move(node));
  }

  TemporaryFolder folder;
  std::string data = folder.path("data.txt");
  std::map<std::string, Stored> tensors;
  double expected = NAN;
};

TEST_F(AppWeightsTest, AcceptsThePrefixBuffersAndTiedCopies) {
  expectLoads();
  rename("wte.weight", "transformer.wte.weight");
  expectLoads();
  tensors["transformer.h.0.attn.bias"] = {FileDtype::u8, {1, 1, 2, 2}, std::string(4, '\1')};
  tensors["h.0.attn.masked_bias"] = {FileDtype::f32, {}, std::string(4, '\0')};
  tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {
      FileDtype::f32, {1}, std::string(4, '\0')};
  expectLoads();
  tensors["lm_head.weight"] = tensors["transformer.wte.weight"];
  expectLoads();
}

TEST_F(AppWeightsTest, RefusesByName) {
  tensors["lm_head.weight"].bytes = floatBytes(toyVocab * toyWidth, 3);
  expectRefusal("lm_head.weight differs");
  tensors.erase("lm_head.weight");

  tensors["h.0.extra.weight"].bytes = floatBytes(toyVocab * toyWidth, 3);
  expectRefusal("h.0.extra.weight");
  tensors.erase("h.0.extra.weight");

  tensors["transformer.head.weight"] = tensors["head.weight"];
  expectRefusal("twice");
  tensors.erase("transformer.head.weight");

  tensors["head.weight"].shape = {toyWidth, toyVocab};
  expectRefusal("head.weight has the shape [8, 256]");
  tensors.erase("head.weight");
  expectRefusal("no tensor head.weight");
}

TEST_F(AppWeightsTest, ConvertsFromBf16) {
  // Values that bf16 holds exactly give the same loss in both types.
  for (auto &[name, stored] : tensors)
    for (std::size_t i = 0; i < stored.bytes.size(); i += 4)
      stored.bytes[i] = stored.bytes[i + 1] = 0;
  expectLoads();
  for (auto &[name, stored] : tensors) {
    std::string halves;
    for (std::size_t i = 0; i < stored.bytes.size(); i += 4)
      halves += stored.bytes.substr(i + 2, 2);
    stored.bytes = halves;
    stored.dtype = FileDtype::bf16;
  }
  expectLoads();
}

} // namespace
} // namespace gradc::rt
