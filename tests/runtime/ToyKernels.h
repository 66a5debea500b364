// Kernels of the toy model: in front of each the buffers it is given. Matrices have toyVocab or
// toyWidth columns, and a task is a row where nothing else is said.
#pragma once

#include <cstdint>

namespace gradc::rt::toy_kernels {

void zero(void *const *buffers, int64_t extent, int64_t task);
/// (targets, valid): how many of `extent` targets count.
void countValid(void *const *buffers, int64_t extent, int64_t task);
/// (tokens, E, x)
void gather(void *const *buffers, int64_t extent, int64_t task);
/// (logits, targets, valid, row losses): logits become their gradient of the mean loss.
void crossEntropy(void *const *buffers, int64_t extent, int64_t task);
/// (row losses, loss): adds the sum.
void addLosses(void *const *buffers, int64_t extent, int64_t task);
/// (loss, valid)
void meanLoss(void *const *buffers, int64_t extent, int64_t task);
/// (tokens, dx, gE): adds rows in order.
void scatter(void *const *buffers, int64_t extent, int64_t task);
/// (gradients, norm)
void norm(void *const *buffers, int64_t extent, int64_t task);
/// (w, m, g, lr, beta1, clip, norm): one task a row of D.
void update(void *const *buffers, int64_t extent, int64_t task);
/// (logits of all rows, position, logits of one row)
void pickRow(void *const *buffers, int64_t extent, int64_t task);

} // namespace gradc::rt::toy_kernels
