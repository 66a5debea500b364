// What nearly every test of the runtime includes; built once.
#include "RuntimePch.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
