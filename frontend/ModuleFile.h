// A model definition written as a module in the nn dialect.
#pragma once

#include "frontend/Import.h"

namespace gradc {

/// Parses and checks a module file, and completes its `nn.param` and `nn.model`:
/// - `@loss(parameters…, tokens, targets) -> tensor<f32>`: parameters come first, are f32 of static
///   shape, and each has an `nn.param` with at least a `name`; tokens and targets are equally long
///   [n] i32.
/// - `@logits`, optional: the same parameters, tokens [seq], position [1], to [1, vocab] f32.
/// - only ops of the nn dialect.
/// - `nn.model` on the module, optional: {family, vocab, max_positions, seq}; the vocabulary comes
///   from @logits where it is not given, and must come from one of them.
/// - `nn.documents` in @loss, optional: the label at its separator is ignored.
///
/// Left out of an `nn.param`: init_kind "normal" with init_std 0.02 where there are two or more
/// dimensions, else "constant" with init_value 0; class "matrix" or "bias" and decay in the same
/// way; fan_in and fan_out those of a weight [in, out].
llvm::Expected<ImportedModel> readModuleFile(llvm::StringRef path, const ImportOptions &options,
                                             mlir::MLIRContext &context);

/// Whether a file's text is a module rather than JSON: bytecode, or blanks and comments aside it
/// begins with a module, a function or an alias. Says nothing of what follows.
bool isModuleText(llvm::StringRef text);

} // namespace gradc
