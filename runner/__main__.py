"""Process 1 of a run pod: `python3 /opt/crewyard/runner`.

With -I -S in front of the directory it starts sooner and executes no .pth file of an installed package.
"""

import _signal  # type: ignore[import-not-found]  # `signal` without its enumerations, which take a while
import os
import sys

# The kernel drops a signal that process 1 neither handles nor blocks. Blocked from here on, it stays pending.
_signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGTERM, _signal.SIGINT))

# The first line of the pod's log, before any wait; its timestamp is the start of the pod.
_next_step = b"waits for a run" if "CREWYARD_WARM" in os.environ else b"claims its run"
os.write(2, b"crewyard: the run pod has started and " + _next_step + b"\n")

# Python puts an executed directory on the path. Use its parent instead, to make this the package `runner`
# here, in tests and for the type checker. (Executed as a file under -I, nothing is on the path.)
_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [os.path.dirname(_here), *(path for path in sys.path if path != _here)]

from runner.pid1.main import main  # noqa: E402

if __name__ == "__main__":
    # Not sys.exit: threads that still wait for an unreachable API must not keep the pod alive.
    code = main()
    sys.stderr.flush()
    os._exit(code)
