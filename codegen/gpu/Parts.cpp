// From parameters to a look into the table.
#include "codegen/gpu/Parts.h"

#include "codegen/gpu/GpuTarget.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace gradc::codegen::gpu {

namespace {

constexpr int64_t wordBytes = 8;

class PartLookup {
public:
  PartLookup(OpBuilder &builder, Location loc, Value table, Value parts)
      : b(builder), loc(loc), i32(b.getI32Type()), i64(b.getI64Type()), table(table), parts(parts) {
    task = widen(NVVM::BlockIdXOp::create(b, loc, i32));
  }

  /// The number of the last part whose first task is not behind the block's: how many such parts
  /// there are, counted by the threads of each warp, less one.
  Value find() {
    Value warp = number(warpThreads);
    Value lane =
        arith::RemUIOp::create(b, loc, widen(NVVM::ThreadIdXOp::create(b, loc, i32)), warp);
    auto loop = scf::ForOp::create(
        b, loc, number(0), parts, warp, number(0),
        [&](OpBuilder &inner, Location, Value first, ValueRange count) {
          OpBuilder::InsertionGuard guard(b);
          b.restoreInsertionPoint(inner.saveInsertionPoint());
          Value word = countStarted(arith::AddIOp::create(b, loc, first, lane));
          scf::YieldOp::create(b, loc, arith::AddIOp::create(b, loc, count[0], word).getResult());
        });
    return arith::SubIOp::create(b, loc, loop.getResult(0), number(1));
  }

  /// i64: word `index` of the table.
  Value word(Value index) { return load(i64, index); }
  Value load(Type type, Value index) {
    Value address = LLVM::GEPOp::create(b, loc, table.getType(), i64, table, index);
    return LLVM::LoadOp::create(b, loc, type, address, wordBytes);
  }

  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value number(int64_t value) { return arith::ConstantIntOp::create(b, loc, i64, value); }
  Value widen(Value x) { return arith::ExtUIOp::create(b, loc, i64, x); }

  Value task; ///< i64, of the launch

private:
  /// Of the parts of a warp's threads, a part each: how many have started.
  Value countStarted(Value part) {
    auto less = arith::CmpIPredicate::slt;
    Value exists = arith::CmpIOp::create(b, loc, less, part, parts);
    Value safe = arith::SelectOp::create(b, loc, exists, part, number(0));
    Value behind = arith::CmpIOp::create(b, loc, less, task, word(safe));
    Value started = arith::AndIOp::create(
        b, loc, exists,
        arith::XOrIOp::create(b, loc, behind,
                              arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1)));
    Value all = arith::ConstantIntOp::create(b, loc, i32, -1);
    Value votes = NVVM::VoteSyncOp::create(b, loc, i32, all, started, NVVM::VoteSyncKind::ballot);
    return widen(LLVM::CtPopOp::create(b, loc, i32, votes));
  }

  OpBuilder &b;
  Location loc;
  Type i32, i64;
  Value table, parts;
};

} // namespace

int64_t partTableBytes(int64_t parts, int64_t buffers) {
  return wordBytes * parts * (2 + buffers); // each part's first task, extent and buffers
}

void takeParts(LLVM::LLVMFuncOp kernel) {
  Block &body = kernel.getBody().front();
  SmallVector<BlockArgument> parameters(body.getArguments());
  SmallVector<NVVM::BlockIdXOp> tasks;
  kernel.walk([&](NVVM::BlockIdXOp op) { tasks.push_back(op); });

  OpBuilder b = OpBuilder::atBlockBegin(&body);
  Location loc = kernel.getLoc();
  Type pointer = parameters.front().getType();
  Value table = body.addArgument(pointer, loc), parts = body.addArgument(b.getI64Type(), loc);
  PartLookup lookup(b, loc, table, parts);
  Value part = lookup.find();
  auto buffers = static_cast<int64_t>(parameters.size()) - 1;
  Value row = arith::MulIOp::create(b, loc, part, lookup.number(1 + buffers));
  row = lookup.add(row, parts); // behind the first tasks
  parameters.back().replaceAllUsesWith(lookup.word(row));
  for (int64_t i = 0; i < buffers; ++i)
    parameters[i].replaceAllUsesWith(lookup.load(pointer, lookup.add(row, lookup.number(1 + i))));
  Value task = arith::SubIOp::create(b, loc, lookup.task, lookup.word(part));
  Value narrow = arith::TruncIOp::create(b, loc, b.getI32Type(), task);
  for (NVVM::BlockIdXOp op : tasks) {
    op.replaceAllUsesWith(narrow);
    op.erase();
  }
  body.eraseArguments(0, parameters.size());
  kernel.setFunctionType(LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(kernel.getContext()),
                                                     {pointer, b.getI64Type()}));
  kernel.setAllArgAttrs(ArrayRef<DictionaryAttr>{b.getDictionaryAttr({}), b.getDictionaryAttr({})});
}

} // namespace gradc::codegen::gpu
