// Row programs as data: value numbering, loops, aliasing, what is refused, and text.
#include "ir/row/Builder.h"
#include "ir/row/Loops.h"
#include "tests/numerics/SamplePrograms.h"

#include <gtest/gtest.h>

using namespace gradc::row;

namespace {

TEST(RowStructure, EqualNodesAreOne) {
  Builder b(8);
  int32_t in = b.matrix();
  EXPECT_EQ(b.exp(b.load(in)), b.exp(b.load(in)));
  EXPECT_NE(b.constant(0.0), b.constant(-0.0));
  EXPECT_NE(b.add(b.load(in), b.constant(1)), b.sub(b.load(in), b.constant(1)));
  EXPECT_EQ(b.constant(NAN), b.constant(NAN));
}

TEST(RowStructure, LoopsOfLayerNorm) {
  Program program = samples::residualLayerNorm(768);
  ASSERT_EQ(verify(program), "");
  EXPECT_EQ(loopCount(program), 3);
  Loops loops = splitIntoLoops(program);
  // sum stored in loop 0, which also adds up the mean; y stored in loop 2.
  EXPECT_EQ(loops.loops[0].effects, std::vector<int32_t>{0});
  EXPECT_EQ(loops.loops[0].reductions.size(), 1u);
  EXPECT_EQ(loops.loops[1].reductions.size(), 1u);
  EXPECT_EQ(loops.loops[2].effects, std::vector<int32_t>{1});
  EXPECT_EQ(loops.stageStores[1], std::vector<int32_t>{2}); // mean
  EXPECT_EQ(loops.stageStores[2], std::vector<int32_t>{3}); // rstd
}

TEST(RowStructure, UnusedReductionsMakeNoLoop) {
  Builder b(8);
  int32_t in = b.matrix(), out = b.matrix();
  b.reduceSum(b.exp(b.load(in)));
  b.store(out, b.load(in));
  EXPECT_EQ(loopCount(b.program()), 1);
}

TEST(RowStructure, TasksCoverTheExtent) {
  EXPECT_EQ(taskCount(samples::residualLayerNorm(8), 0), 0);
  EXPECT_EQ(taskCount(samples::residualLayerNorm(8), 64), 1);
  EXPECT_EQ(taskCount(samples::residualLayerNorm(8), 65), 2);
  EXPECT_EQ(taskCount(samples::swiGlu(), 16385), 2);
}

TEST(RowStructure, InPlaceWhereNothingIsReadAfterwards) {
  Program norm = samples::residualLayerNorm(8);
  EXPECT_TRUE(mayAlias(norm, 0, 4));  // x is last read where the sum is stored
  EXPECT_TRUE(mayAlias(norm, 1, 5));  // the residual is not read after loop 0
  EXPECT_FALSE(mayAlias(norm, 2, 5)); // gamma is no matrix
  EXPECT_FALSE(mayAlias(norm, 4, 5)); // both are written

  Program loss = samples::crossEntropy(8, 1);
  EXPECT_TRUE(mayAlias(loss, 0, 3)); // the target logit is gathered before anything is stored
}

TEST(RowStructure, NotInPlaceWhereALaterLoopOrGatherReads) {
  Builder b(8);
  int32_t in = b.matrix(), early = b.matrix(), late = b.matrix(), wide = b.matrix(Dtype::f32, 16);
  int32_t narrow = b.matrix(Dtype::bf16), loss = b.row(), labels = b.row(Dtype::i32);
  NodeId x = b.load(in);
  NodeId sum = b.reduceSum(x);
  b.store(early, b.exp(x));
  b.store(late, b.div(x, sum));
  b.store(wide, b.div(x, sum));
  b.store(narrow, b.div(x, sum));
  Program program = b.program();
  ASSERT_EQ(verify(program), "");
  EXPECT_FALSE(mayAlias(program, in, early));
  EXPECT_TRUE(mayAlias(program, in, late));
  EXPECT_FALSE(mayAlias(program, in, wide));   // other stride
  EXPECT_FALSE(mayAlias(program, in, narrow)); // other element size

  // A gather that waits for the second loop's reduction.
  Builder c(8);
  in = c.matrix();
  late = c.matrix();
  loss = c.row();
  labels = c.row(Dtype::i32);
  x = c.load(in);
  sum = c.reduceSum(x);
  c.store(late, c.mul(x, sum));
  NodeId total = c.reduceSum(c.mul(x, sum));
  NodeId index = c.select(c.lessThan(total, c.constant(0)), c.load(labels), c.constant(0));
  c.storeRow(loss, c.gather(in, index));
  ASSERT_EQ(verify(c.program()), "");
  EXPECT_FALSE(mayAlias(c.program(), in, late));
}

/// The message of a program made by `build`.
template <typename Build> std::string errorOf(int64_t columns, Build build) {
  Builder b = columns == 0 ? Builder::flat() : Builder(columns);
  build(b);
  return verify(b.program());
}

void expectError(const std::string &error, const std::string &part) {
  EXPECT_NE(error.find(part), std::string::npos) << "got: " << error;
}

TEST(RowStructure, RefusesWrongShapes) {
  expectError(verify(Program{}), "expected columns");
  expectError(errorOf(-3, [](Builder &) {}), "expected columns");
  expectError(errorOf(0, [](Builder &b) { b.column(); }), "matrices and scalars only");
  expectError(errorOf(8, [](Builder &b) { b.matrix(Dtype::f32, 4); }), "at least the columns");
  expectError(errorOf(8, [](Builder &b) { b.load(3); }), "unexpected buffer");
  expectError(errorOf(0, [](Builder &b) { b.store(b.matrix(), b.reduceSum(b.load(b.matrix()))); }),
              "cannot reduce");
}

TEST(RowStructure, RefusesWrongOperands) {
  Program backward;
  backward.columns = 4;
  backward.nodes = {{NodeKind::exp, {0, noNode, noNode}, 0, -1}};
  expectError(verify(backward), "precedes");
  expectError(errorOf(4, [](Builder &b) { b.add(b.columnIndex(), b.constant(1)); }),
              "expected f32 as operand 0");
  expectError(errorOf(4, [](Builder &b) { b.addInt(b.load(b.matrix()), b.constant(1)); }),
              "expected i32 as operand 0");
  expectError(errorOf(4, [](Builder &b) { b.select(b.constant(1), b.constant(1), b.constant(2)); }),
              "expected a condition as operand 0");
  expectError(errorOf(4, [](Builder &b) { b.reduceSum(b.load(b.row())); }), "one value a column");
  expectError(errorOf(4, [](Builder &b) { b.gather(b.matrix(), b.columnIndex()); }),
              "one value a row");
  expectError(errorOf(4, [](Builder &b) { b.reload(b.matrix()); }), "that the program stores");
}

TEST(RowStructure, RefusesWrongEffects) {
  expectError(errorOf(4, [](Builder &b) { b.store(b.row(), b.constant(1)); }), "matrix to store");
  expectError(errorOf(4, [](Builder &b) { b.store(b.matrix(), b.columnIndex()); }),
              "buffer's type");
  expectError(errorOf(4, [](Builder &b) { b.storeRow(b.row(), b.load(b.matrix())); }),
              "one value a row");
  expectError(errorOf(4,
                      [](Builder &b) {
                        int32_t row = b.row();
                        b.storeRow(row, b.neg(b.load(row)));
                      }),
              "does not load");
}

TEST(RowStructure, RefusesLoadsOfWhatWasStored) {
  expectError(errorOf(4,
                      [](Builder &b) {
                        int32_t data = b.matrix(), out = b.matrix();
                        NodeId x = b.load(data);
                        b.store(data, b.exp(x));
                        b.store(out, b.mul(x, b.reduceSum(x)));
                      }),
              "needed after a later store");
}

TEST(RowStructure, TextTellsProgramsApart) {
  std::string text = print(samples::biasGeluTanh(8));
  EXPECT_EQ(text, print(samples::biasGeluTanh(8)));
  EXPECT_NE(text, print(samples::biasGeluTanh(9)));
  EXPECT_NE(text, print(samples::biasGeluTanh(8, Dtype::bf16)));
  Builder b(8);
  int32_t in = b.matrix(Dtype::bf16, 16), out = b.matrix();
  b.store(out, b.mul(b.load(in), b.constant(0.1)));
  EXPECT_EQ(print(b.program()), "columns 8\n"
                                "@0 = matrix bf16 stride 16\n"
                                "@1 = matrix f32\n"
                                "%0 = load @0\n"
                                "%1 = constant 0.10000000000000001\n"
                                "%2 = mul %0 %1\n"
                                "store @1 %2\n");
}

} // namespace
