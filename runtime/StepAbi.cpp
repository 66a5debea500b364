// The functions of Abi.def. After the first failure the rest of a program's calls do nothing, and
// the program returns to whoever ran it, who reads the status.
#include "runtime/StepAbi.h"

#include <type_traits>

namespace {

using gradc::rt::LaunchKind;
using gradc::rt::LaunchRecord;
using gradc::rt::Status;

template <typename Run> void record(GradcContext &context, LaunchRecord launch, Run run) {
  if (!context.status.ok())
    return;
  if (!context.observe) {
    context.status = run();
    return;
  }
  context.status = context.device->time(run, launch.times);
  if (context.status.ok())
    context.observe(launch);
}

} // namespace

extern "C" {

void gradc_launch(GradcContext *context, const GradcLaunch *launch) {
  record(*context,
         {launch->name,
          launch->isProduct ? LaunchKind::gemm : LaunchKind::kernel,
          {},
          launch->flops,
          launch->bytes},
         [&] { return context->device->launch(*launch, context->iteration); });
}

void gradc_gemm(GradcContext *context, const GradcGemm *gemm) {
  record(*context, {gemm->name, LaunchKind::gemm, {}, gemm->flops, gemm->bytes},
         [&] { return context->device->gemm(*gemm, context->iteration); });
}

void gradc_record_event(GradcContext *context, const GradcStreamEvent *event) {
  if (context->status.ok())
    context->status = context->device->recordEvent(*event);
}

void gradc_wait_event(GradcContext *context, const GradcStreamEvent *event) {
  if (context->status.ok())
    context->status = context->device->waitEvent(*event);
}

void gradc_begin_iteration(GradcContext *context, int64_t iteration) {
  context->iteration = iteration;
}

} // extern "C"

namespace {

// Every symbol that the compiler may declare is defined above with the parameters it declares.
struct P;
struct I;
template <typename Declared, typename Defined>
constexpr bool agrees =
    std::is_same_v<Declared, P> ? std::is_pointer_v<Defined> : std::is_same_v<Defined, int64_t>;
template <typename First, typename Second, typename A, typename B>
constexpr bool takes(void (*)(A, B)) {
  return agrees<First, A> && agrees<Second, B>;
}
#define GRADC_ABI(symbol, first, second) static_assert(takes<first, second>(symbol));
#include "runtime/Abi.def"
#undef GRADC_ABI

} // namespace
