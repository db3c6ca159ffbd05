"""Instructions of a small training step, counted by callgrind: a slow-down shows on a noisy machine too.

valgrind shows programs a processor with AVX2 and caches of its own, whatever the real one is: counts vary with the
compiler and the product library only. After a change that is meant, write the new counts into BUDGET.
"""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

# Millions of instructions of the second update, by tests/bench/counted_step.cpp.
BUDGET = {"all": 93.0, "own": 25.9}
ALLOWED = 1.05  # of the budget; below 0.9 of it the budget is out of date


class InstructionBudget(unittest.TestCase):
    def test_a_step_takes_no_more_instructions_than_it_did(self):
        program = pathlib.Path(os.environ["OCTAVO_TEST_PROGRAMS"]) / "counted_step"
        if not shutil.which("valgrind") or not program.exists():
            print("skipped: valgrind is not installed, or this build has no counted_step (sanitizers)")
            self.skipTest("see above")
        for what, budget in BUDGET.items():
            with self.subTest(what):
                command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--collect-atstart=no",
                           "--callgrind-out-file=/dev/null", program, what]
                environment = dict(os.environ, OMP_NUM_THREADS="1")
                if what == "own":  # products don't count then: the library's shorter code is translated sooner
                    environment["ONEDNN_MAX_CPU_ISA"] = "SSE41"
                done = subprocess.run(command, capture_output=True, text=True, env=environment)
                self.assertEqual(done.returncode, 0, done.stderr)
                counted = int(re.search(r"Collected : (\d+)", done.stderr)[1]) / 1e6
                self.assertLess(counted, ALLOWED * budget, f"{what}: {counted:.2f} million")
                self.assertGreater(counted, 0.9 * budget, f"{what}: {counted:.2f} million; lower the budget")


if __name__ == "__main__":
    unittest.main()
