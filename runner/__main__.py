"""Process 1 of a run pod: `python3 /opt/crewyard/runner`.

With -I -S in front of the directory it starts sooner and executes no .pth file of an installed package.
"""

import _signal  # type: ignore[import-not-found]  # `signal` without its enumerations, which take a while
import os
import sys

# A signal that process 1 neither handles nor blocks is lost. From here on, one that asks to stop is kept.
_signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGTERM, _signal.SIGINT))

# The first line of the pod's log, before anything is waited for; its time stamp is when the pod began.
os.write(2, b"crewyard: the run's pod is up and asks for its run\n")

# A directory that is run has itself on the path. Its parent instead, so that this is the package `runner`
# here, in the tests and for the type checker alike. (Run as a file under -I, nothing is on the path.)
_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [os.path.dirname(_here), *(path for path in sys.path if path != _here)]

from runner.pid1.main import main  # noqa: E402

if __name__ == "__main__":
    # Not sys.exit: threads that still wait for a facade that is away must not hold the pod.
    code = main()
    sys.stderr.flush()
    os._exit(code)
