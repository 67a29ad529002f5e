# ruff: noqa: PTH100, PTH120
"""Process 1 of a run pod: `python3 /opt/crewyard/runner`; with -I -S it starts sooner and imports nothing
foreign."""

import os
import sys

# A directory that is run has itself on the path. Its parent instead, so that this is the package `runner`
# here, in the tests and for the type checker alike.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from runner.pid1.main import main  # noqa: E402

if __name__ == "__main__":
    # Not sys.exit: threads that still wait for a facade that is away must not hold the pod.
    code = main()
    sys.stderr.flush()
    os._exit(code)
