// Initial values of parameters: each a function of the seed, the parameter's name and the element's
// index, so that they are the same for any number of threads and any order of parameters.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/Metadata.h"
#include "runtime/Status.h"

namespace gradc::rt {

class ThreadPool;

/// `family` follows each parameter's own rule in the metadata. The others replace the rule of
/// matrices and embeddings, and leave biases and norms to theirs:
/// `normal`: mean 0, standard deviation 0.02. `xavier`: uniform within sqrt(6 / (fan in + fan
/// out)). `kaiming`: normal with standard deviation sqrt(2 / fan in). `orthogonal`: a random matrix
/// whose rows (or columns, whichever are fewer) are orthonormal; embeddings as in `normal`.
enum class InitKind { family, normal, xavier, kaiming, orthogonal };

/// A user status for an unknown word.
Expected<InitKind> parseInitKind(const std::string &word);

/// Fills `values` (slot.elements() floats) of a parameter's slot.
void initialise(const Slot &slot, InitKind kind, uint64_t seed, float *values, ThreadPool &pool);

} // namespace gradc::rt
