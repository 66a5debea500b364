# lit's configuration: tests of the tools, beside the rooms that they mirror.
import os

import lit.formats

config.name = "gradc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.gradc_build, "tests", "lit")
config.environment["PATH"] = os.pathsep.join(
    [config.gradc_tools, config.llvm_tools, os.environ["PATH"]]
)
config.substitutions.append(("%gradc_source", config.gradc_source))
