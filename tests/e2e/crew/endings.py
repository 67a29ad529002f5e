"""Functions that end badly, one for each way there is."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def raises(inputs):
    """Fails with an exception."""
    raise ValueError("the tide is out")


def gives_an_object(inputs):
    """Returns what has no JSON form."""
    return {"chart": object()}


def needs_a_variable(inputs):
    """Reads a variable that is not set."""
    return os.environ["CHART_API_KEY"]


def exits(inputs):
    """Ends the process under everybody's feet."""
    os._exit(3)


def leaves(inputs):
    """Calls sys.exit()."""
    sys.exit("no more")


def killed(inputs):
    """Is killed."""
    os.kill(os.getpid(), signal.SIGKILL)


def crashes(inputs):
    """Reads where nothing is."""
    ctypes.string_at(0)


def hungry(inputs):
    """Uses more memory than there is."""
    held = []
    while True:
        held.append(bytearray(8 << 20))


def fills(inputs):
    """Writes more than the disk that it may use, at some speed."""
    with Path("/tmp/filling").open("wb") as file:
        while True:
            file.write(os.urandom(1 << 20))
            file.flush()
            time.sleep(0.02)


# In one write each, since parent and child write to one pipe.
BEATS = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(1, b"deaf\\n")
while True:
    os.write(1, b"child %f\\n" % time.time())
    time.sleep(0.05)
"""


def deaf(inputs):
    """Hears SIGTERM and goes on, as does a child in a session of its own; both say when they were alive."""
    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(time.time()))
    subprocess.Popen([sys.executable, "-c", BEATS], start_new_session=True)
    while True:
        os.write(1, b"crew %f\n" % time.time())
        if asked:
            os.write(1, b"asked %f\n" % asked.pop())
        time.sleep(0.05)


def leaves_a_deaf_child(inputs):
    """Ends when it is asked to, and says when, which its child does not."""

    def end(*_):
        os.write(1, b"asked %f\n" % time.time())
        sys.exit(1)

    signal.signal(signal.SIGTERM, end)
    subprocess.Popen([sys.executable, "-c", BEATS], start_new_session=True)
    time.sleep(600)


def parent(inputs):
    """Leaves children of several kinds behind and is done."""
    endless = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
    subprocess.Popen([sys.executable, "-c", endless])
    subprocess.Popen([sys.executable, "-c", endless], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    return "done"
