"""Frozen objects are excluded from collections.

Runs in its own process, because freezing is permanent.
"""

import subprocess
import sys

PROGRAM = """
import gc
from kube import python_gc

objects = [[number] for number in range(50_000)]
python_gc.freeze_startup_objects()
tracked = len(gc.get_objects())
assert tracked < 1000, f"{tracked} objects are still tracked"

class Cycle:
    collected = 0
    def __init__(self):
        self.itself = self
    def __del__(self):
        Cycle.collected += 1

cycles = 3 * python_gc.GENERATION_0_THRESHOLD
for _ in range(cycles):
    Cycle()
left = cycles - Cycle.collected
assert left <= 2 * python_gc.GENERATION_0_THRESHOLD, f"{Cycle.collected} of {cycles} cycles were collected"
"""


def test_freeze_startup_objects():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
