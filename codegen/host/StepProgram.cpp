// The step program: exec commands as calls into the runtime's ABI.
#include "codegen/host/StepProgram.h"
#include "codegen/KernelTable.h"
#include "runtime/Abi.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace gradc::codegen {
namespace {

// The kinds of nn::Epilogue are numbered as the ABI's.
static_assert(static_cast<int64_t>(nn::Epilogue::None) == GRADC_NO_EPILOGUE);
static_assert(static_cast<int64_t>(nn::Epilogue::Bias) == GRADC_BIAS);
static_assert(static_cast<int64_t>(nn::Epilogue::Gelu) == GRADC_GELU);
static_assert(static_cast<int64_t>(nn::Epilogue::GeluAux) == GRADC_GELU_AUX);
static_assert(static_cast<int64_t>(nn::Epilogue::GeluBias) == GRADC_GELU_BIAS);
static_assert(static_cast<int64_t>(nn::Epilogue::GeluAuxBias) == GRADC_GELU_AUX_BIAS);
static_assert(static_cast<int64_t>(nn::Epilogue::GeluGradient) == GRADC_DGELU);
static_assert(static_cast<int64_t>(nn::Epilogue::GeluGradientBiasGradient) ==
              GRADC_DGELU_BIAS_GRADIENT);
static_assert(static_cast<int64_t>(nn::Epilogue::BiasGradientLhs) == GRADC_BIAS_GRADIENT_A);
static_assert(static_cast<int64_t>(nn::Epilogue::BiasGradientRhs) == GRADC_BIAS_GRADIENT_B);

class StepProgramEmitter {
public:
  StepProgramEmitter(ModuleOp module, llvm::Module &target)
      : module(module), target(target), context(target.getContext()), b(context),
        i64(llvm::Type::getInt64Ty(context)), ptr(llvm::PointerType::getUnqual(context)) {
    // Every field of the ABI is 64 bits wide, so these layouts have no padding.
    bufferType = llvm::StructType::get(context, {i64, i64, i64, i64});
    llvm::Type *pair = llvm::ArrayType::get(i64, 2);
    matrixType = llvm::StructType::get(context, {bufferType, i64, i64, pair, i64});
    partType = llvm::StructType::get(context, {i64, i64});
    launchType = llvm::StructType::get(
        context, {ptr, ptr, ptr, i64, i64, i64, ptr, i64, i64, i64, i64, ptr, bufferType, i64});
    gemmType = llvm::StructType::get(
        context, {ptr,        i64,        i64,        i64, pair, matrixType, matrixType, matrixType,
                  i64,        bufferType, i64,        i64, i64,  bufferType, bufferType, i64,
                  bufferType, i64,        bufferType, i64, i64,  i64,        i64});
    eventType = llvm::StructType::get(context, {i64, i64});
    declareAbi();
  }

  void run(llvm::StringRef metadata, llvm::StringRef device) {
    SmallVector<llvm::Constant *> programs;
    auto *programType = llvm::StructType::get(context, {ptr, ptr});
    for (auto program : module.getOps<exec::ProgramOp>())
      programs.push_back(llvm::ConstantStruct::get(
          programType, {text(program.getSymName()), emitProgram(program)}));
    llvm::Constant *blob = text(metadata);
    cast<llvm::GlobalVariable>(blob)->setSection(".gradc.metadata");
    llvm::SmallVector<char> data = constantData();
    llvm::Constant *constants =
        global(llvm::ConstantDataArray::get(context, ArrayRef<char>(data.data(), data.size())),
               "constants");
    cast<llvm::GlobalVariable>(constants)->setAlignment(llvm::Align(64));
    auto *list = llvm::ArrayType::get(programType, programs.size());
    auto *executableType =
        llvm::StructType::get(context, {i64, ptr, i64, ptr, i64, i64, ptr, ptr, ptr});
    llvm::Constant *executable = llvm::ConstantStruct::get(
        executableType,
        {number(GRADC_ABI_VERSION), blob, number(metadata.size()), constants, number(data.size()),
         number(programs.size()), global(llvm::ConstantArray::get(list, programs), "programs"),
         target.getOrInsertGlobal(device, i64), orNull(target.getNamedGlobal(imagesSymbol))});
    new llvm::GlobalVariable(target, executableType, /*isConstant=*/true,
                             llvm::GlobalValue::ExternalLinkage, executable, "gradc_executable");
  }

private:
  void declareAbi() {
    llvm::Type *P = ptr, *I = i64, *none = llvm::Type::getVoidTy(context);
#define GRADC_ABI(symbol, ...)                                                                     \
  abi[#symbol] =                                                                                   \
      target.getOrInsertFunction(#symbol, llvm::FunctionType::get(none, {__VA_ARGS__}, false));
#include "runtime/Abi.def"
#undef GRADC_ABI
  }

  llvm::Constant *number(int64_t value) { return llvm::ConstantInt::getSigned(i64, value); }
  llvm::Constant *pairOf(int64_t first, int64_t second) {
    return llvm::ConstantArray::get(llvm::ArrayType::get(i64, 2), {number(first), number(second)});
  }
  llvm::Constant *global(llvm::Constant *value, llvm::StringRef name) {
    return new llvm::GlobalVariable(target, value->getType(), /*isConstant=*/true,
                                    llvm::GlobalValue::PrivateLinkage, value, "gradc." + name);
  }
  llvm::Constant *text(llvm::StringRef string) {
    llvm::Constant *&known = texts[string];
    if (!known)
      known = global(llvm::ConstantDataArray::getString(context, string), "text");
    return known;
  }

  llvm::Constant *buffer(exec::BufferAttr attribute) {
    if (!attribute)
      return llvm::Constant::getNullValue(bufferType);
    return llvm::ConstantStruct::get(
        bufferType,
        {number(static_cast<int64_t>(attribute.getSpace())), number(attribute.getOffset()),
         number(attribute.getLoopStride()), number(attribute.getBytes())});
  }
  static GradcType typeNumber(Type type) {
    return llvm::TypeSwitch<Type, GradcType>(type)
        .Case<BFloat16Type>([](Type) { return GRADC_BF16; })
        .Case<Float16Type>([](Type) { return GRADC_F16; })
        .Case<Float8E4M3FNType>([](Type) { return GRADC_F8E4M3; })
        .Case<Float8E5M2Type>([](Type) { return GRADC_F8E5M2; })
        .Default([](Type) { return GRADC_F32; });
  }
  llvm::Constant *matrix(exec::MatrixAttr attribute) {
    return llvm::ConstantStruct::get(
        matrixType, {buffer(attribute.getBuffer()), number(attribute.getRowStride()),
                     number(attribute.getColumnStride()), pairOf(attribute.getBatchStride(), 0),
                     number(typeNumber(attribute.getElement()))});
  }

  /// A kernel is a function for the CPU, a GradcGpuKernel for a GPU.
  llvm::Constant *orNull(llvm::Constant *symbol) {
    return symbol ? symbol : llvm::ConstantPointerNull::get(cast<llvm::PointerType>(ptr));
  }

  llvm::Constant *launch(exec::LaunchOp op) {
    SmallVector<llvm::Constant *> buffers, parts;
    for (Attribute attribute : op.getBuffers())
      buffers.push_back(buffer(cast<exec::BufferAttr>(attribute)));
    if (ArrayAttr attributes = op.getPartsAttr())
      for (auto part : attributes.getAsRange<exec::PartAttr>())
        parts.push_back(llvm::ConstantStruct::get(
            partType, {number(part.getExtent()), number(part.getFirstTask())}));
    size_t count = buffers.size() / std::max<size_t>(1, parts.size());
    CommandWork work = workOf(op);
    auto *list = llvm::ArrayType::get(bufferType, buffers.size());
    auto *partList = llvm::ArrayType::get(partType, parts.size());
    return global(
        llvm::ConstantStruct::get(
            launchType,
            {text(op.getKernel()), orNull(target.getFunction(op.getKernel())),
             orNull(target.getNamedGlobal(op.getKernel())), number(op.getExtent()),
             number(op.getTasks()), number(count),
             global(llvm::ConstantArray::get(list, buffers), "buffers"), number(work.flops),
             number(work.bytes), number(op.getProduct() ? 1 : 0), number(parts.size()),
             parts.empty() ? orNull(nullptr)
                           : global(llvm::ConstantArray::get(partList, parts), "parts"),
             buffer(op.getTableAttr()), number(op.getStream())}),
        "launch");
  }

  llvm::Constant *gemm(exec::GemmOp op) {
    exec::EpilogueAttr epilogue = op.getEpilogueAttr();
    exec::MatrixAttr bias = epilogue ? epilogue.getBias() : exec::MatrixAttr();
    exec::MatrixAttr aux = epilogue ? epilogue.getAux() : exec::MatrixAttr();
    CommandWork work = workOf(op);
    return global(llvm::ConstantStruct::get(
                      gemmType, {text(productName(op)),
                                 number(op.getM()),
                                 number(op.getN()),
                                 number(op.getK()),
                                 pairOf(op.getBatch(), 1),
                                 matrix(op.getA()),
                                 matrix(op.getB()),
                                 matrix(op.getC()),
                                 number(op.getAccumulate() ? 1 : 0),
                                 buffer(op.getWorkspaceAttr()),
                                 number(op.getWorkspaceBytes()),
                                 number(op.getTf32() ? 1 : 0),
                                 number(op.getScaleAAttr() ? 1 : 0),
                                 buffer(op.getScaleAAttr()),
                                 buffer(op.getScaleBAttr()),
                                 number(epilogue ? static_cast<int64_t>(epilogue.getKind()) : 0),
                                 buffer(bias ? bias.getBuffer() : exec::BufferAttr()),
                                 number(bias ? typeNumber(bias.getElement()) : 0),
                                 buffer(aux ? aux.getBuffer() : exec::BufferAttr()),
                                 number(aux ? aux.getRowStride() : 0),
                                 number(op.getStream()),
                                 number(work.flops),
                                 number(work.bytes)}),
                  "gemm");
  }

  llvm::Constant *event(int64_t event, int64_t stream) {
    return global(llvm::ConstantStruct::get(eventType, {number(event), number(stream)}), "event");
  }

  llvm::Function *emitProgram(exec::ProgramOp program) {
    auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {ptr}, false);
    function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage,
                                      "gradc.program." + program.getSymName(), target);
    // Thousands of calls and nothing to optimise: fast instruction selection keeps this linear.
    function->addFnAttr(llvm::Attribute::OptimizeNone);
    function->addFnAttr(llvm::Attribute::NoInline);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
    emitCommands(program.getBody().front());
    b.CreateRetVoid();
    return function;
  }

  void emitCommands(Block &block) {
    for (Operation &op : block) {
      if (auto command = dyn_cast<exec::LaunchOp>(op))
        b.CreateCall(abi["gradc_launch"], {function->getArg(0), launch(command)});
      else if (auto command = dyn_cast<exec::GemmOp>(op))
        b.CreateCall(abi["gradc_gemm"], {function->getArg(0), gemm(command)});
      else if (auto record = dyn_cast<exec::RecordOp>(op))
        b.CreateCall(abi["gradc_record_event"],
                     {function->getArg(0), event(record.getEvent(), record.getStream())});
      else if (auto wait = dyn_cast<exec::WaitOp>(op))
        b.CreateCall(abi["gradc_wait_event"],
                     {function->getArg(0), event(wait.getEvent(), wait.getStream())});
      else if (auto loop = dyn_cast<exec::RepeatOp>(op))
        emitRepeat(loop);
    }
  }

  void emitRepeat(exec::RepeatOp loop) {
    llvm::BasicBlock *entry = b.GetInsertBlock();
    auto *body = llvm::BasicBlock::Create(context, "microbatch", function);
    auto *done = llvm::BasicBlock::Create(context, "done", function);
    b.CreateBr(body);
    b.SetInsertPoint(body);
    llvm::PHINode *index = b.CreatePHI(i64, 2);
    index->addIncoming(number(0), entry);
    b.CreateCall(abi["gradc_begin_iteration"], {function->getArg(0), index});
    emitCommands(loop.getBody().front());
    llvm::Value *next = b.CreateAdd(index, number(1));
    index->addIncoming(next, b.GetInsertBlock());
    b.CreateCondBr(b.CreateICmpSLT(next, number(loop.getCount())), body, done);
    b.SetInsertPoint(done);
    b.CreateCall(abi["gradc_begin_iteration"], {function->getArg(0), number(0)});
  }

  /// The bytes of every constant at its planned offset.
  llvm::SmallVector<char> constantData() {
    llvm::SmallVector<char> data;
    auto plan = module->getAttrOfType<DictionaryAttr>("gradc.plan");
    for (Attribute entry : plan.getAs<ArrayAttr>("constants")) {
      auto constant = cast<DictionaryAttr>(entry);
      auto value = constant.getAs<DenseElementsAttr>("value");
      data.resize(constant.getAs<IntegerAttr>("offset").getInt(), 0);
      ArrayRef<char> raw = value.getRawData();
      for (int64_t i = 0, n = value.isSplat() ? value.getNumElements() : 1; i < n; ++i)
        data.append(raw.begin(), raw.end());
    }
    return data;
  }

  ModuleOp module;
  llvm::Module &target;
  llvm::LLVMContext &context;
  llvm::IRBuilder<> b;
  llvm::Type *i64, *ptr;
  llvm::StructType *bufferType, *matrixType, *partType, *launchType, *gemmType, *eventType;
  llvm::StringMap<llvm::FunctionCallee> abi;
  llvm::StringMap<llvm::Constant *> texts;
  llvm::Function *function = nullptr;
};

} // namespace

void emitStepProgram(ModuleOp module, llvm::StringRef metadata, llvm::StringRef device,
                     llvm::Module &target) {
  StepProgramEmitter(module, target).run(metadata, device);
}

} // namespace gradc::codegen
