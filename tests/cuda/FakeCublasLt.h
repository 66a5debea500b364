// What FakeCublasLt.cpp has besides cuBLASLt's own functions, for tests to look up in it.
#pragma once

#include <cstdint>

/// Objects that were created and not yet destroyed: handles, descriptors, layouts, preferences.
using FakeCublasLtLiveObjects = int64_t();
/// Products that were executed.
using FakeCublasLtProducts = int64_t();
/// Searches for algorithms that were made.
using FakeCublasLtSearches = int64_t();
