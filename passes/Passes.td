// The passes, one file each under passes/; options of a pass are options of `gradc-opt --<pass>`.
#ifndef GRADC_PASSES
#define GRADC_PASSES
include "mlir/Pass/PassBase.td"

def PrecisionPass : Pass<"precision", "::mlir::ModuleOp"> {
  let summary = "Gives the forward graph the types that a precision mode computes in";
  let description = [{
    By the ops' classes (PrecisionOpInterface): matrix products and attention read and give bf16 or
    fp16, loss and sums stay fp32, what is in between follows its inputs; parameters, norms'
    weights and the residual stream stay fp32. A value is cast once for all its readers. With tf32
    nothing changes its type: products round their inputs as they read them. fp8 is bf16 with
    linear layers (passes/Quantization.h) whose operands pass through nn.fake_quantize and whose
    gradients through nn.quantize_gradient; delayed scaling adds arguments with nn.record behind the
    parameters, the largest magnitude of each such tensor in the steps before.

    ```mlir
    %y = nn.matmul %x, %w : tensor<8x64xf32>, tensor<64x96xf32> -> tensor<8x96xf32>
    // becomes, with bf16
    %x0 = nn.cast %x : tensor<8x64xf32> to tensor<8x64xbf16>
    %w0 = nn.cast %w : tensor<64x96xf32> to tensor<64x96xbf16>
    %y = nn.matmul %x0, %w0 : tensor<8x64xbf16>, tensor<64x96xbf16> -> tensor<8x96xbf16>
    ```
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"fp32\"", "fp32, tf32, bf16, fp16 or fp8">,
    Option<"delayedScaling", "delayed-scaling", "bool", "false",
           "fp8: scales of activations and gradients by the magnitudes of the steps before">];
  let dependentDialects = ["::gradc::nn::NnDialect"];
}

def QuantizeProductsPass : Pass<"quantize-products", "::mlir::ModuleOp"> {
  let constructor = "nullptr"; // made by createQuantizeProductsPass with a target's kernels
  let summary = "Products of fake-quantized operands read the fp8 numbers themselves";
  let description = [{
    A product of two values that nn.fake_quantize gives reads what nn.quantize gives instead, and
    the scales: no bit changes, as bf16 and f32 hold these values exactly. A value is quantized once
    for all its products. Where the target's library reads fp8 along the inner dimension alone
    (KernelLibrary::float8Operands), an operand that lies otherwise is read from a transposed copy,
    made once for all products; a product that it cannot make of fp8 at all stays as it is. Also
    removes nn.quantize_gradient, which only autodiff looks at.

    ```mlir
    %x0 = nn.fake_quantize %x by %sx in f8E4M3FN : tensor<8x64xbf16> to tensor<8x64xbf16>
    %w0 = nn.fake_quantize %w by %sw in f8E4M3FN : tensor<64x96xf32> to tensor<64x96xbf16>
    %y = nn.matmul %x0, %w0 : tensor<8x64xbf16>, tensor<64x96xbf16> -> tensor<8x96xbf16>
    // becomes
    %x1 = nn.quantize %x by %sx : tensor<8x64xbf16> to tensor<8x64xf8E4M3FN>
    %w1 = nn.quantize %w by %sw : tensor<64x96xf32> to tensor<64x96xf8E4M3FN>
    %y = nn.matmul %x1, %w1 scales %sx, %sw
        : tensor<8x64xf8E4M3FN>, tensor<64x96xf8E4M3FN> -> tensor<8x96xbf16>
    ```
  }];
  let dependentDialects = ["::gradc::nn::NnDialect"];
}

def NarrowBiasesPass : Pass<"narrow-biases", "::mlir::ModuleOp"> {
  let constructor = "nullptr"; // made by createNarrowBiasesPass with a target's kernels
  let summary = "Gives biases of products the type in which the target's library adds them";
  let description = [{
    A library that adds a bias as it writes a narrow result reads it in that type. The cast of a
    parameter becomes a low copy (training-step), so that it costs a step nothing. Runs behind
    autodiff: gradients of biases stay f32.

    ```mlir
    %1 = nn.add %0, %b : tensor<8x96xbf16>, tensor<96xf32>
    // becomes, with %0 a product
    %b0 = nn.cast %b : tensor<96xf32> to tensor<96xbf16>
    %1 = nn.add %0, %b0 : tensor<8x96xbf16>, tensor<96xbf16>
    ```
  }];
  let dependentDialects = ["::gradc::nn::NnDialect"];
}

def BiasGradientsPass : Pass<"bias-gradients", "::mlir::func::FuncOp"> {
  let constructor = "nullptr"; // made by createBiasGradientsPass with a target's kernels
  let summary = "Lets products that make a weight's gradient sum up the bias's";
  let description = [{
    A sum over the rows of a matrix that a product multiplies along those rows, where the target's
    library makes such sums (KernelLibrary::takesEpilogue). Runs before fusion, so that the sums
    leave the clusters that they would have joined.

    ```mlir
    %p = nn.column_partials %dy : tensor<8x96xbf16> -> tensor<1x96xf32>
    %db = nn.fold_rows %p : tensor<1x96xf32> -> tensor<96xf32>
    %dw = nn.matmul %x, %dy transpose_lhs : tensor<8x64xbf16>, tensor<8x96xbf16> -> tensor<64x96xf32>
    // becomes
    %dw, %db = nn.epilogue_matmul %x, %dy transpose_lhs epilogue bias_gradient_rhs : …
    ```
  }];
  let dependentDialects = ["::gradc::nn::NnDialect"];
}

def ProductEpiloguesPass : Pass<"product-epilogues", "::mlir::func::FuncOp"> {
  let constructor = "nullptr"; // made by createProductEpiloguesPass with a target's kernels
  let summary = "Makes clusters that a library's products can do part of the products";
  let description = [{
    A cluster that is nothing but steps of an epilogue (EpilogueOpInterface: a bias, a GELU, a GELU's
    gradient) of one product which it alone reads, where the target's library takes the product with
    it (KernelLibrary::takesEpilogue). Others stay kernels of their own.

    ```mlir
    %0 = nn.matmul %x, %w : tensor<8x64xbf16>, tensor<64x96xbf16> -> tensor<8x96xbf16>
    %1:2 = nn.fused(%0, %b : …) -> (…) { … nn.add … nn.activation gelu_tanh … }
    // becomes
    %h, %a = nn.epilogue_matmul %x, %w epilogue gelu_aux_bias bias(%b : tensor<96xbf16>) : …
    ```
  }];
  let dependentDialects = ["::gradc::nn::NnDialect"];
}

def JoinLossPass : Pass<"join-loss", "::mlir::func::FuncOp"> {
  let summary = "Makes one op of the head's matrix product and the cross-entropy that reads it";
  let description = [{
    Where nothing else reads the logits, so that they need not exist all at once (chunk-loss).

    ```mlir
    %logits = nn.matmul %x, %w transpose_rhs : …
    %loss, %lse = nn.cross_entropy %logits, %targets : …
    // becomes
    %loss = nn.linear_cross_entropy %x, %w, %targets transpose_weight : …
    ```
  }];
  let dependentDialects = ["::gradc::nn::NnDialect"];
}

def AutodiffPass : Pass<"autodiff", "::mlir::ModuleOp"> {
  let summary = "Builds the backward of @loss";
  let description = [{
    Replaces `@loss(parameters, tokens, targets) -> loss` by
    `@loss_and_gradients(parameters, tokens, targets, seed) -> (loss, gradient of each parameter)`,
    the seed being the loss's own gradient, and keeps `@loss` for evaluation. Each op builds its own
    backward (DifferentiableOpInterface); gradients of a value used more than once are added in the
    reverse order of its uses. Where a record of magnitudes (nn.record) would have a gradient stands
    its next value.

    ```mlir
    func.func @loss(%w: tensor<8x8xf32> {nn.param = {name = "w"}}, …) -> tensor<f32> { … }
    // becomes, beside @loss:
    func.func @loss_and_gradients(%w: …, %tokens: …, %targets: …, %seed: tensor<f32>) -> (tensor<f32>, tensor<8x8xf32>)
    ```
  }];
  let dependentDialects = ["::gradc::nn::NnDialect"];
}

def RecomputePass : Pass<"recompute", "::mlir::ModuleOp"> {
  let summary = "Computes forward values again in the backward instead of keeping them";
  let description = [{
    Decides for each layer of `@loss_and_gradients` which values to keep (passes/recompute/Choice.h)
    and puts second copies of the others in front of the gradients that read them. The copies are
    the same ops on the same values, so gradients do not change by a bit; they read what was kept
    through `nn.after`, which keeps them where they are. Leaves the number of levels in the
    module's attribute `nn.recompute_levels`.

    ```mlir
    %h = nn.activation gelu_tanh %a : tensor<8x64xf32>
    …
    %dw = nn.matmul %h, %dy transpose_lhs : …
    // becomes
    %a1 = nn.after %a, %dy : tensor<8x64xf32>, tensor<8x16xf32>
    %h1 = nn.activation gelu_tanh %a1 {nn.recomputed} : tensor<8x64xf32>
    %dw = nn.matmul %h1, %dy transpose_lhs : …
    ```
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"none\"",
           "none; cheap: what costs no matrix product; full: all but layer inputs">,
    Option<"level", "level", "int", "-1", "instead of a mode: 0 (keep all) to the last (full)">];
  let dependentDialects = ["::gradc::nn::NnDialect"];
}

def TrainingStepPass : Pass<"training-step", "::mlir::ModuleOp"> {
  let summary = "Builds the programs of an executable from @loss and @loss_and_gradients";
  let description = [{
    `@train_step`: count the valid labels of all microbatches, run forward and backward on each with
    seed 1 / count and sum gradients in f32, take the global norm, clip, update. Also `@gradients`
    (the same without the update) and `@eval_loss`. Arguments and results carry `nn.slot` with the
    role and name they have in the executable (docs/design/executable.md).

    What the graph casts a parameter to, or its fp8 numbers and their scale, becomes state of its own
    (role `low_parameter`), which is made of the updated parameter; `@low_parameters` makes it of
    parameters that were loaded. Of delayed scaling, each record of magnitudes is the largest of a
    history, kept as optimizer state, to which a step adds the largest over its microbatches;
    `@eval_loss` and `@logits` scale by each tensor's own magnitudes instead.
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "adamw, sgd or lion">,
    Option<"gradAccum", "grad-accum", "int64_t", "1", "microbatches a step">,
    Option<"scaleLoss", "scale-loss", "bool", "false",
           "scale the loss, unscale the gradients, and skip an update whose norm is not finite">];
  let dependentDialects = ["::gradc::nn::NnDialect"];
}

def AbsorbSumsPass : Pass<"absorb-sums", "::mlir::func::FuncOp"> {
  let summary = "Adds into an accumulator instead of writing a tensor to be added";
  let description = [{
    Where one side of a sum is the only use of an op that can add as it writes (a matrix product, an
    embedding's gradient) and the other dies there.

    ```mlir
    %1 = nn.matmul %x, %dy transpose_lhs : …
    %2 = nn.add %g, %1 : …
    // becomes
    %2 = nn.matmul %x, %dy transpose_lhs acc %g : …
    ```
  }];
  let dependentDialects = ["::gradc::nn::NnDialect"];
}

def ChunkLossPass : Pass<"chunk-loss", "::mlir::func::FuncOp"> {
  let summary = "Computes logits, loss and their gradients a chunk of rows at a time";
  let description = [{
    Replaces `nn.linear_cross_entropy` and its gradient by plain ops for each chunk of rows: the
    chunk's logits, their loss, the logits' gradient (in place), its rows of the input's gradient
    (written into the whole) and its share of the weight's (added to the chunks' before it). So one
    chunk's logits are all that is alive at a time. How many there are and why stands in the
    function's `nn.explain`.

    ```mlir
    %dx, %dw, %loss = nn.linear_cross_entropy_grad %g, %x, %w, %targets : …
    // becomes, with two chunks
    %x0 = nn.slice %x at row 0 : tensor<8x64xf32> to tensor<4x64xf32>
    %logits0 = nn.matmul %x0, %w : …
    %loss0, %lse0 = nn.cross_entropy %logits0, %targets0 : …
    %d0 = nn.cross_entropy_grad %g0, %logits0, %targets0, %lse0 : …
    %dx0 = nn.matmul %d0, %w transpose_rhs : …
    %dw0 = nn.matmul %x0, %d0 transpose_lhs : …
    … and with %x1, %dw1 = nn.matmul %x1, %d1 transpose_lhs acc %dw0 : …
    %dx = nn.concat %dx0, %dx1 rows : …
    ```
  }];
  let options = [
    Option<"rows", "rows", "int64_t", "-1",
           "rows of a chunk; 0: all in one; -1: as many as keep a chunk's logits within 64 MiB, or "
           "`allowed-rows` where those are more">,
    Option<"allowedRows", "allowed-rows", "int64_t", "1",
           "rows that a chunk may have in any case on the target (KernelLibrary::allowedLossChunkRows)">];
  let dependentDialects = ["::gradc::nn::NnDialect"];
}

def WeightPanelsPass : Pass<"weight-panels", "::mlir::ModuleOp"> {
  let constructor = "nullptr"; // made by createWeightPanelsPass with a target's kernels
  let summary = "Keeps weights in the panels that products multiply";
  let description = [{
    Each weight that a product takes in panels (PanelsOpInterface, KernelLibrary::panelsOf) gets a
    slot for each layout (role `low_parameter`, `panels` and `panels_transposed`). The step packs
    them right behind the weight's update, `@low_parameters` those of weights that were loaded; all
    products read them, of every microbatch and program. A narrow copy that nothing else reads is
    state no longer. Products that read a weight otherwise (of few rows, of fp8) go on doing so.

    ```mlir
    %y = nn.matmul %x, %w : tensor<8x64xf32>, tensor<64x96xf32> -> tensor<8x96xf32>
    …
    %w1, … = nn.adamw %w, …
    // becomes, %p being an argument
    %y = nn.matmul %x, %p : tensor<8x64xf32>, tensor<64x96xf32, #nn.panels<…>> -> tensor<8x96xf32>
    …
    %w1, … = nn.adamw %w, …
    %p1 = nn.pack_panels %w1 : tensor<64x96xf32> to tensor<64x96xf32, #nn.panels<…>>
    ```
  }];
  let dependentDialects = ["::gradc::nn::NnDialect"];
}

def FusionPass : Pass<"fusion", "::mlir::func::FuncOp"> {
  let summary = "Forms clusters of row ops, each one kernel";
  let description = [{
    Joins a row op to the cluster of a producer or sibling with the same rows and columns, where no
    other op stands between them, so that intermediates stay in registers or cache. With `enable` off
    every row op becomes a cluster of its own. What was joined and what was not, and why, stands in the
    function's `nn.explain`.

    ```mlir
    %0 = nn.add %x, %b : tensor<8x64xf32>, tensor<64xf32>
    %1 = nn.activation gelu %0 : tensor<8x64xf32>
    // becomes
    %1 = nn.fused(%x, %b : …) -> (tensor<8x64xf32>) { … nn.add … nn.activation … }
    ```
  }];
  let options = [Option<"enable", "enable", "bool", "true", "off: one cluster a row op">];
  let dependentDialects = ["::gradc::nn::NnDialect"];
}

def SchedulePass : Pass<"schedule", "::mlir::func::FuncOp"> {
  let summary = "Orders the commands so that buffers die early";
  let description = [{
    Keeps the graph's order, in which a gradient follows what it needs, but moves an op that only
    reads parameters, inputs or constants down to its first use.
  }];
  let dependentDialects = ["::gradc::nn::NnDialect"];
}

def JoinLaunchesPass : Pass<"join-launches", "::mlir::func::FuncOp"> {
  let constructor = "nullptr"; // made by createJoinLaunchesPass with a target's kernels
  let summary = "Marks equal kernels that can run at the same time as one launch";
  let description = [{
    Sums of column sums (a bias's gradient) wait for the last of their kernel, where nothing needs
    them before: what they keep alive is a thirty-second of what was read to make it, or less.
    Where commands follow one another and none needs another, those of one kernel move together and
    get the same number in `nn.joined`. The memory plan makes a launch in parts of them: the
    optimizer's updates of all parameters, the sums of squares of all gradients.

    ```mlir
    %0 = nn.square_sums %a {nn.joined = 0 : i64} : tensor<768xf32> -> tensor<1xf32>
    %1 = nn.square_sums %b {nn.joined = 0 : i64} : tensor<768x768xf32> -> tensor<36xf32>
    ```
  }];
  let dependentDialects = ["::gradc::nn::NnDialect"];
}

def AssignStreamsPass : Pass<"assign-streams", "::mlir::func::FuncOp"> {
  let summary = "Puts what nothing waits for on a stream of its own";
  let description = [{
    An op gets `nn.stream = 1` where none of the next commands of the stream 0 (so many as
    passes/memory/Streams.h says) needs a result of it: gradients of weights beside the chain of
    gradients of activations. Who reads it soon and is on stream 1 itself does not count; the end of
    a block needs everything. Commands of one launch are on one stream.

    ```mlir
    %dw = nn.matmul %x, %dy transpose_lhs {nn.stream = 1 : i64} : …
    %dx = nn.matmul %dy, %w transpose_rhs : …
    ```
  }];
  let dependentDialects = ["::gradc::nn::NnDialect"];
}

def StreamEventsPass : Pass<"stream-events", "::mlir::ModuleOp"> {
  let summary = "Orders the streams of the planned programs by events";
  let description = [{
    Where a command touches bytes that an earlier one of another stream touches, one of them
    writing, the other stream records an event behind the last such command, and this one waits for
    it, unless an earlier wait implies it. Stream 0 is where a program, and each round of a repeat,
    begins and ends: the others wait for it first, and it waits for them last. `gradc explain` says
    how many commands and events there are.

    ```mlir
    exec.launch @layer_norm_grad …
    exec.record 0 stream 0
    exec.gemm …
    exec.wait 0 stream 1
    exec.gemm … stream 1
    exec.record 0 stream 1
    …
    exec.wait 0 stream 0
    ```
  }];
  let dependentDialects = ["::gradc::exec::ExecDialect"];
}

def CheckStreamsPass : Pass<"check-streams", "::mlir::ModuleOp"> {
  let summary = "Fails where the streams of a planned program are not ordered";
  let description = [{
    By streams::validateStreams, which shares no code with the pass that inserts the events: any two
    commands that touch a common byte, one of them writing, must be ordered.
  }];
  let dependentDialects = ["::gradc::exec::ExecDialect"];
}

def CheckPlanPass : Pass<"check-plan", "::mlir::ModuleOp"> {
  let summary = "Fails where a planned module's commands reach beyond its memory"
                " or name what is not there";
  let description = [{
    For modules that were read from a file: each buffer lies inside of its space, each launch names
    a kernel of the module and has tasks, streams and events are few. What the kernels do with their
    buffers is not looked at.
  }];
  let dependentDialects = ["::gradc::exec::ExecDialect"];
}

def MemoryPlanPass : Pass<"memory-plan", "::mlir::ModuleOp"> {
  let constructor = "nullptr"; // made by createMemoryPlanPass with a target's kernels
  let summary = "Places every buffer and lowers the programs to exec commands";
  let description = [{
    Persistent slots get offsets in the state space; everything else in one arena by
    planner::plan, checked by planner::validate. Results take over the memory of operands that die
    there where the op allows it; views cost nothing. Each function becomes an `exec.program`, equal
    kernels one `exec.kernel`. What commands of stream 1 use is kept for as long as they may run
    beside those of stream 0, and they have one workspace of their own.
  }];
  let dependentDialects = ["::gradc::nn::NnDialect", "::gradc::exec::ExecDialect"];
}
#endif
