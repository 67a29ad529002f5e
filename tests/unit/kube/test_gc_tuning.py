"""What was there when a process became ready costs no collection any more.

Tried in a process of its own: it is for good.
"""

import subprocess
import sys

PROGRAM = """
import gc
from kube import gc_tuning

kept = [[number] for number in range(50_000)]
gc_tuning.settle()
seen = len(gc.get_objects())
assert seen < 1000, f"{seen} objects are still looked at"

class Ring:
    gone = 0
    def __init__(self):
        self.itself = self
    def __del__(self):
        Ring.gone += 1

rings = 3 * gc_tuning.YOUNG
for _ in range(rings):
    Ring()
assert rings - Ring.gone <= 2 * gc_tuning.YOUNG, f"{Ring.gone} of {rings} rings went by themselves"
"""


def test_a_process_that_has_settled():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
