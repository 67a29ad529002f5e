"""A crew that does what its input says, and says to the ledger what it did.

Runs as a Run (`kickoff`) and as a bare Job (as a program, its input in SCRIPT). Standard library only.
"""

import contextlib
import ctypes
import hashlib
import http.client
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

try:
    from crewyard_runtime import ask, emit
except ImportError:  # a Job has no runner, and asks nothing

    def emit(type, **data):
        print(json.dumps({"type": type, **data}), flush=True)


ARTIFACT = "artifact.bin"
_TRIES = 300


class LedgerClient:
    """The ledger as one process of the crew sees it."""

    def __init__(self, url):
        self._place = urlsplit(url)
        self._who = {"run": _run(), "token": secrets.token_hex(8), "pod": _pod()}
        self._number = 0

    def put(self, what, **data):
        """Returns once it is written there; the same line may be there twice, with one number."""
        line = json.dumps({**self._who, "what": what, "number": self._number, "data": data})
        self._number += 1
        for _ in range(_TRIES):
            try:
                connection = http.client.HTTPConnection(self._place.hostname, self._place.port, timeout=10)
                with contextlib.closing(connection):
                    connection.request("PUT", "/", line)
                    if connection.getresponse().status == 200:
                        return
            except OSError:
                pass
            time.sleep(0.2)
        raise RuntimeError("the ledger does not answer")


def _run():
    """The name of the Run, which a pod that waited for it does not have; a Job's pod has the Job's."""
    return os.environ.get("CREWYARD_RUN_ID", "").replace("_", "-", 1) or socket.gethostname()


def _pod():
    """The uid of the pod, from the path of a file that the kubelet mounts into each container."""
    with contextlib.suppress(OSError):
        found = re.search(r"/pods/([0-9a-f-]{36})/", Path("/proc/self/mountinfo").read_text())
        if found:
            return found[1]
    return ""


def content(run, size):
    """The bytes of a run's artifact, which a test can make again."""
    block = hashlib.sha256(run.encode()).digest()
    return (block * (size // len(block) + 1))[:size]


def kickoff(inputs):
    """Start, events, artifact, end; then the exit that was asked for."""
    ledger = LedgerClient(inputs["ledger"])
    ledger.put("start")
    for number in range(1, int(inputs.get("events", 0)) + 1):
        emit("campaign.step", number=number)
        ledger.put("mark", said=number)
        time.sleep(float(inputs.get("pause", 0)))
    for number in range(1, int(inputs.get("questions", 0)) + 1):
        answer = ask(f"Depth {number}?", schema={"type": "integer"})
        ledger.put("mark", request=f"q{number}", answer=answer)
    if inputs.get("artifact"):
        data = content(_run(), int(inputs["artifact"]))
        Path("artifacts", ARTIFACT).write_bytes(data)
        ledger.put("mark", artifact=ARTIFACT, sha256=hashlib.sha256(data).hexdigest())
    time.sleep(float(inputs.get("sleep", 0)))
    exits = inputs.get("exit", "returns")
    ledger.put("end", exit=exits)
    return EXITS[exits](inputs)


def returns(inputs):
    return {"run": _run(), "tide": os.environ.get("TIDE")}


def raises(inputs):
    raise ValueError("the tide is out")


def killed(inputs):
    os.kill(os.getpid(), signal.SIGKILL)


def segfault(inputs):
    ctypes.string_at(0)


def hungry(inputs):
    held = []
    while True:
        held.append(bytearray(8 << 20))


def deaf(inputs):
    """Does not listen to SIGTERM, nor do its children, one of them in a session of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    endless = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(3600)"
    subprocess.Popen([sys.executable, "-c", endless], start_new_session=True)
    emit("campaign.deaf")
    while True:
        time.sleep(1)


def forks(inputs):
    """Leaves children behind that would outlive it."""
    for _ in range(int(inputs.get("count", 20))):
        if os.fork() == 0:
            os.setsid()
            time.sleep(3600)
            os._exit(0)
    return "forked"


def prints(inputs):
    """Prints very much, as fast as it is taken."""
    line = "x" * 1023 + "\n"
    for _ in range(int(inputs["megabytes"]) * 1024):
        sys.stdout.write(line)
    sys.stdout.flush()
    return "printed"


def files(inputs):
    """Makes very many files beside the artifacts."""
    for number in range(int(inputs["count"])):
        folder = Path("/tmp/many", str(number // 1000))
        if number % 1000 == 0:
            folder.mkdir(parents=True)
        (folder / str(number)).touch()
    return "made"


def fills(inputs):
    """Writes more than the disk that it may use."""
    with Path("/tmp/filling").open("wb") as file:
        while True:
            file.write(b"\1" * (1 << 20))
            file.flush()


def keeps(inputs):
    """Leaves many artifacts of one size, each with bytes of its own."""
    for number in range(int(inputs["count"])):
        data = content(f"{_run()}-{number}", int(inputs["size"]))
        Path("artifacts", f"{number:04}.bin").write_bytes(data)
    return "kept"


def counts(inputs):
    """Prints numbers, each in a line, as fast as they are taken."""
    for number in range(int(inputs["count"])):
        print(number)
    return "counted"


EXITS = {
    one.__name__: one
    for one in (returns, raises, killed, segfault, hungry, deaf, forks, prints, files, fills, keeps, counts)
}

if __name__ == "__main__":
    Path("artifacts").mkdir(exist_ok=True)
    kickoff(json.loads(os.environ["SCRIPT"]))
