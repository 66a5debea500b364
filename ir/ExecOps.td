// The exec dialect: the planned step, as commands over offsets.
#ifndef GRADC_IR_EXEC_OPS
#define GRADC_IR_EXEC_OPS
include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::gradc::exec";
  let summary = "The planned step";
  let description = [{
    Commands in the order in which they run, over buffers that the memory plan has placed. There are
    no tensors: a buffer is an offset in a space. `gradc explain` reads this program, the host
    codegen compiles it, the simulator times it.

    Commands of one `stream` run in that order; those of another may run beside them, but for what
    `exec.wait` says. A device that runs all in order may take no notice of streams and events.
  }];
  let useDefaultAttributePrinterParser = 1;
}

def Exec_Space : I32EnumAttr<"Space", "memory spaces", [
  I32EnumAttrCase<"State", 0, "state">, I32EnumAttrCase<"Arena", 1, "arena">,
  I32EnumAttrCase<"Constant", 2, "constant">]> {
  let cppNamespace = "::gradc::exec";
  let genSpecializedAttr = 0;
}

def Exec_BufferAttr : AttrDef<Exec_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "A planned buffer: bytes from the start of a space";
  let description = [{
    `bytes` is from its first byte to behind its last, gaps between rows included. `loop_stride`
    bytes are added to the offset for each microbatch of the enclosing repeat.
  }];
  let parameters = (ins EnumParameter<Exec_Space>:$space, "int64_t":$offset, "int64_t":$bytes,
                        DefaultValuedParameter<"int64_t", "0">:$loop_stride);
  let assemblyFormat = "`<` $space `,` $offset `,` `bytes` $bytes (`,` `step` $loop_stride^)? `>`";
}

def Exec_MatrixAttr : AttrDef<Exec_Dialect, "Matrix"> {
  let mnemonic = "matrix";
  let summary = "A strided matrix operand, strides in elements";
  let parameters = (ins "::gradc::exec::BufferAttr":$buffer, "::mlir::Type":$element,
                        "int64_t":$row_stride, "int64_t":$column_stride, "int64_t":$batch_stride);
  let assemblyFormat = "`<` $buffer `,` $element `,` `rows` $row_stride `,` `columns` $column_stride `,` `batch` $batch_stride `>`";
}

def Exec_EpilogueAttr : AttrDef<Exec_Dialect, "Epilogue"> {
  let mnemonic = "epilogue";
  let summary = "What becomes of a product's result as it is written, and where the rest lies";
  let description = [{
    `kind` as nn.epilogue_matmul has it; `bias` is read or, where the kind gives a bias gradient,
    written; `aux` has rows as c has, contiguous columns and c's element type.
  }];
  let parameters = (ins "::gradc::nn::Epilogue":$kind,
                        OptionalParameter<"::gradc::exec::MatrixAttr">:$bias,
                        OptionalParameter<"::gradc::exec::MatrixAttr">:$aux);
  let assemblyFormat = "`<` $kind (`bias` $bias^)? (`aux` $aux^)? `>`";
}

def Exec_PartAttr : AttrDef<Exec_Dialect, "Part"> {
  let mnemonic = "part";
  let summary = "One of the groups of buffers of a launch in parts";
  let description = [{ Its tasks are those of the launch from `first_task` on, up to the next part's. }];
  let parameters = (ins "int64_t":$extent, "int64_t":$first_task);
  let assemblyFormat = "`<` `extent` $extent `,` `from` $first_task `>`";
}

def Exec_WorkAttr : AttrDef<Exec_Dialect, "Work"> {
  let mnemonic = "work";
  let summary = "What a launch does beside the least that would do (ir/KernelLibrary.h, KernelWork)";
  let parameters = (ins "int64_t":$bytes, "int64_t":$least_bytes, "int64_t":$flops,
                        "int64_t":$least_flops);
  let assemblyFormat = "`<` `bytes` $bytes `of` $least_bytes `,` `flops` $flops `of` $least_flops `>`";
}

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

def Exec_KernelOp : Exec_Op<"kernel", [Symbol, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "One distinct kernel: the nn op that it computes";
  let description = [{
    The body holds one nn op on block arguments; `row_strides` has, for each operand and then each
    result, elements from row to row (0: contiguous); `alignments` has, in the same order, bytes
    that their addresses are multiples of, where some are less than the target's widest access
    (empty: none is). A launch passes the buffers of the operands
    (but not of an accumulator, which lies in its result), of the results, and a workspace if any.
    With `table` it is launched in parts and finds their buffers in a table. `reason` says why its launches do more than the least, where they do.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$row_strides,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$alignments,
                       DefaultValuedAttr<I64Attr, "0">:$workspace_bytes,
                       OptionalAttr<StrAttr>:$reason, UnitAttr:$table);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `strides` $row_strides (`aligned` $alignments^)? (`workspace` $workspace_bytes^)?
    (`reason` $reason^)? (`table` $table^)?
    attr-dict-with-keyword $body
  }];
}

def Exec_ProgramOp : Exec_Op<"program", [Symbol, NoTerminator, SingleBlock]> {
  let summary = "One program of the executable: a list of commands";
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}

def Exec_LaunchOp : Exec_Op<"launch"> {
  let summary = "Runs a kernel over its tasks";
  let description = [{
    `product` marks matrix products, whose share of a step `bench` prints. `work`, where the target
    counts it, is what traces and the kernel table of `explain` tell; elsewhere they tell `flops` and
    `bytes`, the cost of the op.

    In parts, the kernel runs on several groups of buffers at once: `buffers` has each part's in
    turn, `extent` and `tasks` are of all together. On GPUs the kernel finds its part in a table,
    which the runtime writes to `table`.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, I64Attr:$extent, I64Attr:$tasks, ArrayAttr:$buffers,
                       I64Attr:$flops, I64Attr:$bytes, UnitAttr:$product,
                       OptionalAttr<Exec_WorkAttr>:$work, OptionalAttr<ArrayAttr>:$parts,
                       OptionalAttr<Exec_BufferAttr>:$table,
                       DefaultValuedAttr<I64Attr, "0">:$stream);
  let assemblyFormat = [{
    $kernel `extent` $extent `tasks` $tasks (`parts` $parts^)? (`table` $table^)? $buffers `flops` $flops `bytes` $bytes
    (`product` $product^)? (`work` $work^)? (`stream` $stream^)? attr-dict
  }];
}

def Exec_GemmOp : Exec_Op<"gemm"> {
  let summary = "A matrix product by the library";
  let description = [{
    c = a · b (+ c where accumulate), for each batch; m x k times k x n, summed up in f32. With
    `tf32` operands of f32 are rounded to 10 bits of mantissa; `scales` are the places of two f32 by
    which a and b, of fp8, are multiplied.
  }];
  let arguments = (ins I64Attr:$m, I64Attr:$n, I64Attr:$k, I64Attr:$batch, Exec_MatrixAttr:$a,
                       Exec_MatrixAttr:$b, Exec_MatrixAttr:$c, UnitAttr:$accumulate, UnitAttr:$tf32,
                       OptionalAttr<Exec_BufferAttr>:$scale_a, OptionalAttr<Exec_BufferAttr>:$scale_b,
                       OptionalAttr<Exec_BufferAttr>:$workspace,
                       DefaultValuedAttr<I64Attr, "0">:$workspace_bytes,
                       OptionalAttr<Exec_EpilogueAttr>:$epilogue,
                       DefaultValuedAttr<I64Attr, "0">:$stream);
  let assemblyFormat = [{
    `m` $m `n` $n `k` $k `batch` $batch `a` $a `b` $b `c` $c (`accumulate` $accumulate^)?
    (`tf32` $tf32^)? (`scales` $scale_a^ `,` $scale_b)? (`workspace` $workspace^ `bytes` $workspace_bytes)?
    (`epilogue` $epilogue^)? (`stream` $stream^)? attr-dict
  }];
}

def Exec_RecordOp : Exec_Op<"record"> {
  let summary = "Notes in an event how far its stream has come, for others to wait for";
  let description = [{ Events are numbered from 0; one may be recorded again once it was waited for. }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$event,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$stream);
  let assemblyFormat = "$event `stream` $stream attr-dict";
}

def Exec_WaitOp : Exec_Op<"wait"> {
  let summary = "What follows on the stream waits for the event's last record";
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$event,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$stream);
  let assemblyFormat = "$event `stream` $stream attr-dict";
}

def Exec_RepeatOp : Exec_Op<"repeat", [NoTerminator, SingleBlock]> {
  let summary = "Runs its commands once a microbatch";
  let arguments = (ins I64Attr:$count);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$count attr-dict-with-keyword $body";
}
#endif
