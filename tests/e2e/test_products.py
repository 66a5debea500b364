"""--gemm auto: each shape of a product by our kernel or the library, as measured times say."""

import json
import os
import re
import unittest

import test_goldens
from harness import GOLDENS, GRADC, SOURCE, WORK, Case, fresh, run

MODEL = GOLDENS / "tiny-gpt2"
GOLDEN = json.loads((MODEL / "golden.json").read_text())
FLAGS = ("--micro-batch", GOLDEN["batch"], "--seq", GOLDEN["seq"], "--gemm", "auto")
LINE = re.compile(r"^products     (\d+) shapes: (\d+) generated, (\d+) library "
                  r"\((\d+) measured now, (\d+) from (.*)\)$", re.M)


def counts(done):
    """Shapes, generated, library, measured, cached."""
    return [int(number) for number in LINE.search(done.stdout).groups()[:5]]


class Products(Case):
    @classmethod
    def setUpClass(cls):
        """One compile measures; the other tests read its times, or others in their place."""
        WORK.mkdir(exist_ok=True)
        cls.cache = fresh("products-cache")
        cls.first = fresh("products-first")
        cls.measured = cls.gradc("compile", MODEL, "-o", cls.first, *FLAGS)

    @classmethod
    def gradc(cls, *arguments, cache=None, **keywords):
        return run(GRADC, *arguments, env={**os.environ, "GRADC_CACHE_DIR": str(cache or cls.cache)},
                   **keywords)

    def other_times(self, name):
        """A cache in which every second shape is one that the library makes faster; the shapes that
        it makes, and the others."""
        (machine, products), = json.loads((self.cache / "products.json").read_text()).items()
        shapes = sorted(products)
        for i, shape in enumerate(shapes):
            products[shape] = {"generated": 0.001, "library": 0.0005 if i % 2 else 0.002}
        folder = fresh(name)
        folder.mkdir()
        (folder / "products.json").write_text(json.dumps({machine: products}))
        return folder, shapes[1::2], shapes[0::2]

    def test_the_second_compile_measures_nothing(self):
        shapes, generated, library, measured, cached = counts(self.measured)
        self.assertGreater(shapes, 5)
        self.assertEqual((generated + library, measured, cached), (shapes, shapes, 0))
        self.assertEqual(self.measured.stderr, "")
        second = fresh("products-second")
        again = counts(self.gradc("compile", MODEL, "-o", second, *FLAGS))
        self.assertEqual(again, [shapes, generated, library, 0, shapes])
        # The metadata, with the programs and the times.
        explained = run(GRADC, "explain", self.first).stdout
        self.assertEqual(run(GRADC, "explain", second).stdout, explained)
        self.assertEqual(self.gradc("explain", MODEL, *FLAGS).stdout, explained)
        lines = re.findall(r"^\d+ x \d+ x \d+.*: (generated|library) "
                           r"\(generated .* ms, library .* ms\)$", explained, re.M)
        self.assertEqual((lines.count("generated"), lines.count("library")), (generated, library))
        self.assertIn('gemm "auto"', explained)

    def test_times_choose_and_the_choice_outlives_the_cache(self):
        folder, library, generated = self.other_times("products-mixed")
        module, executable = fresh("products.mlir"), fresh("products-mixed-run")
        self.gradc("compile", MODEL, *FLAGS, "--compile-to", "memory-plan", "-o", module, cache=folder)
        text = module.read_text()
        made = {tuple(map(int, sizes)) for sizes in re.findall(r"exec\.gemm m (\d+) n (\d+) k (\d+)", text)}
        asked = {tuple(map(int, re.match(r"(\d+) x (\d+) x (\d+)", shape).groups())) for shape in library}
        self.assertEqual(made, asked)
        self.assertIn(" product", text)
        planned = counts(self.gradc("plan", MODEL, *FLAGS, cache=folder))
        self.assertEqual(planned[:3], [len(library) + len(generated), len(generated), len(library)])

        unused = fresh("products-unused")
        done = self.gradc("compile", module, "--compile-from", "memory-plan", "-o", executable, cache=unused)
        self.assertNotIn("products ", done.stdout)
        self.assertFalse(unused.exists(), "something was measured")
        self.assertEqual(run(GRADC, "explain", executable).stdout,
                         self.gradc("explain", MODEL, *FLAGS, cache=folder).stdout)
        test_goldens.Goldens.train(self, executable, MODEL, GOLDEN, GOLDEN)
        done = run(GRADC, "compile", module, "--compile-from", "memory-plan", "--gemm", "library", "-o",
                   executable, expect=1)
        self.assertIn("--gemm library", done.stderr)

    def test_the_measured_choice_trains(self):
        test_goldens.Goldens.train(self, self.first, MODEL, GOLDEN, GOLDEN)

    def test_a_cache_that_cannot_be_written_is_a_warning(self):
        blocked = fresh("products-blocked")
        blocked.write_text("no folder")
        few = SOURCE / "tests" / "codegen" / "narrow-products.mlir"
        done = self.gradc("plan", few, "--gemm", "auto", cache=blocked)
        self.assertRegex(done.stderr, r"\Awarning: .*products-blocked.* cannot be written: .*\n\Z")
        self.assertEqual(counts(done)[4], 0)

    def test_the_library_is_given_f32_alone(self):
        done = self.gradc("plan", MODEL, *FLAGS, "--precision", "tf32", cache=fresh("products-none"))
        self.assertIn("products     none that the library could make: all are generated", done.stdout)

    def test_a_gpu_has_its_own_products(self):
        done = self.gradc("plan", MODEL, *FLAGS, "--target", "cuda:sm_90", expect=1)
        self.assertIn("--gemm auto is for products on the CPU", done.stderr)


if __name__ == "__main__":
    unittest.main()
