// The commands of an executable, one file each. Every one runs on a thread with a stack for
// kernels.
#pragma once

#include "runtime/Abi.h"
#include "runtime/Metadata.h"
#include "runtime/app/Options.h"

namespace gradc::rt {

Status train(const GradcExecutable &executable, const Metadata &metadata,
             const TrainOptions &options);
Status evaluate(const GradcExecutable &executable, const Metadata &metadata,
                const EvalOptions &options);
Status bench(const GradcExecutable &executable, const Metadata &metadata,
             const BenchOptions &options);
Status generate(const GradcExecutable &executable, const Metadata &metadata,
                const GenerateOptions &options);
Status info(const GradcExecutable &executable, const Metadata &metadata,
            const InfoOptions &options);

} // namespace gradc::rt
