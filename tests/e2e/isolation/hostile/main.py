"""A crew that tries to get out, and reports the results. It runs outside of a run, too, to compare."""

import json
import os
import subprocess
import sys
import time

import files  # noqa: F401
import network  # noqa: F401
import probe
import rights  # noqa: F401

import runner  # noqa: F401


def kickoff(inputs):
    """All attempts, one by one; what each came to."""
    return probe.everything(inputs)


def leaves(inputs):
    """Leaves what should not be taken along."""
    import left

    left.artifacts()
    return {"refused": left.forged(), "termination": left.termination()}


def forks(inputs):
    """Starts processes until it may not; gives how many there were."""
    started = []
    try:
        while len(started) < inputs["most"]:
            # The smallest that there is: no interpreter.
            started.append(subprocess.Popen(["sleep", "300"]))
        stopped = ""
    except OSError as error:
        stopped = str(error)
    for one in started:
        one.kill()
    for one in started:
        one.wait()
    return {"started": len(started), "stopped": stopped}


def listens(inputs):
    """Prints what its environment names, for a while."""
    time.sleep(inputs.get("seconds", 60))


if __name__ == "__main__":
    if os.getpid() == 1:
        # Attempts are made on process 1 from a child, as in a run.
        sys.exit(subprocess.run([sys.executable, *sys.argv], check=False).returncode)
    print(json.dumps(probe.everything(json.loads(os.environ["INPUTS"]))))
