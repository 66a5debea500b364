// Builds one function of a model definition: the layers of a transformer as ops of the nn dialect.
// Activations are [tokens, features] f32. Parameters become arguments in the order of first use.
#pragma once

#include "ir/Nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"
#include <optional>
#include <string>

namespace gradc {

/// What a parameter is: what `--init` acts on. Spelt as in `nn.param`.
enum class ParameterClass { matrix, embedding, bias, norm };

/// A parameter as Hugging Face names and lays it out.
struct ParameterSpec {
  std::string name;
  llvm::SmallVector<int64_t, 2> shape;
  ParameterClass parameterClass;
  bool normal;   ///< drawn from a normal distribution, else constant
  double value;  ///< the standard deviation, or the constant
  int64_t fanIn; ///< elements that one output sums over
  int64_t fanOut;
};

/// A linear layer: `name`.weight and, where there is one, `name`.bias.
struct LinearSpec {
  std::string name;
  int64_t in;
  int64_t out;
  double deviation;       ///< of the weight's initial values
  bool bias = false;      ///< initially 0
  bool outputRows = true; ///< weight [out, in] as torch's Linear; else [in, out] as Conv1D
};

struct AttentionSpec {
  int64_t batch;
  int64_t heads;
  int64_t kvHeads;
  double scale;
  double dropout;     ///< probability that an attention weight is dropped in training
  int64_t window = 0; ///< 0: none; otherwise query i sees the keys i - window + 1 .. i
};

/// How the tokens of one call are laid out: batch rows of seq tokens, the sequence inner.
struct TokenShape {
  int64_t batch;
  int64_t seq;
};

/// What a function is built for: only training draws random numbers.
enum class GraphUse { training, inference };

class GraphBuilder {
public:
  /// Starts `@name(tokens [batch·seq] i32, second [second] i32)` in `module`. With a separator the
  /// rows hold documents, each up to and with that token, whose attention and positions are apart.
  GraphBuilder(mlir::ModuleOp module, llvm::StringRef name, TokenShape shape, int64_t second,
               GraphUse use, std::optional<int64_t> separator = std::nullopt);
  /// The first input: token ids.
  mlir::Value tokens() const;
  /// The second: targets, or the position wanted.
  mlir::Value second() const;
  /// Each token's position, in its document or its row: [batch·seq] i32.
  mlir::Value positions();
  /// Ends the function with its result. Nothing may be built after it.
  void finish(mlir::Value result);

  /// Names the ops that follow, e.g. "h.0.attn", in diagnostics and traces.
  void at(const llvm::Twine &name);

  /// The parameter of that name: a new argument at first, the same one from then on (tied weights).
  mlir::Value parameter(const ParameterSpec &spec);
  /// An embedding table [rows, columns].
  mlir::Value table(llvm::StringRef name, int64_t rows, int64_t columns, double deviation);

  mlir::Value linear(mlir::Value input, const LinearSpec &spec);
  /// input · tableᵀ: a head tied to the embedding.
  mlir::Value matmulTransposed(mlir::Value input, mlir::Value table);
  mlir::Value embedding(mlir::Value indices, mlir::Value table);
  mlir::Value layerNorm(mlir::Value input, llvm::StringRef name, double epsilon);
  mlir::Value rmsNorm(mlir::Value input, llvm::StringRef name, double epsilon);
  mlir::Value activation(mlir::Value input, nn::ActivationKind kind);
  mlir::Value add(mlir::Value lhs, mlir::Value rhs);
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs);
  /// Columns offset … offset + width.
  mlir::Value slice(mlir::Value input, int64_t offset, int64_t width);
  /// Causal attention of [tokens, heads·head_dim] by [tokens, kvHeads·head_dim], within documents.
  mlir::Value attention(mlir::Value query, mlir::Value key, mlir::Value value,
                        const AttentionSpec &spec);
  /// Drops elements with probability `rate` where the function is for training.
  mlir::Value dropout(mlir::Value input, double rate);
  /// Turns each head by its token's position, of which the tables have a row each.
  mlir::Value rope(mlir::Value input, mlir::Value cos, mlir::Value sin, int64_t heads);
  mlir::Value constant(llvm::ArrayRef<float> values, llvm::ArrayRef<int64_t> shape);
  mlir::Value constant(llvm::ArrayRef<int32_t> values);
  /// Sum of the cross-entropy over the rows that have a label.
  mlir::Value lossSum(mlir::Value logits, mlir::Value targets);

private:
  /// What random numbers are keyed by (nn.dropout); null where nothing is drawn.
  struct RandomKeys {
    mlir::Value seed, step, firstRow, stream;
  };
  mlir::RankedTensorType floats(llvm::ArrayRef<int64_t> shape);
  bool draws(double rate) const { return use == GraphUse::training && rate > 0; }
  /// What nn.documents says of the tokens; null where nothing separates them.
  struct Documents {
    mlir::Value firstKey, positions;
  };
  Documents documents();
  /// The function's last three arguments, made when first asked for, and a stream of their own.
  RandomKeys randomKeys();

  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::func::FuncOp function;
  mlir::Block *body;
  TokenShape shape;
  GraphUse use;
  std::optional<int64_t> separator;
  Documents ofTokens; ///< made when first asked for
  bool hasRandomKeys = false;
  int32_t streams = 0; ///< of random numbers, given out so far
  llvm::StringMap<mlir::Value> byName;
  llvm::SmallVector<mlir::DictionaryAttr> described; ///< one a parameter, in order
};

} // namespace gradc
