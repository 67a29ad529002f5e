"""A crew that ends in every way there is, one function each."""

import asyncio
import logging
import os
import signal
import sys
import time
from pathlib import Path

from crewyard_runtime import emit

ARTIFACTS = Path("artifacts")


def kickoff(inputs):
    """Succeeds, with everything a crew can leave behind."""
    print(f"hello {inputs.get('name', 'nobody')}")
    print("to the other stream", file=sys.stderr)
    logging.getLogger("crew").warning("careful")
    emit("agent.started", agent="writer", task="write")
    (ARTIFACTS / "nested").mkdir()
    (ARTIFACTS / "nested" / "report.md").write_text("# Report\n")
    (ARTIFACTS / "data.json").write_text('{"a": 1}')
    emit("agent.completed", agent="writer", task="write", output="done")
    return {"greeting": f"hello {inputs.get('name', 'nobody')}", "home": os.environ["HOME"]}


async def asynchronous(inputs):
    """Succeeds, awaited."""
    await asyncio.sleep(0.01)
    return inputs


def nothing():
    """Takes nothing, gives nothing."""


def raises(inputs):
    """Fails with an exception."""
    raise ValueError("the tide is out")


def exits(inputs):
    """Ends the process under everybody's feet."""
    os._exit(3)


def leaves(inputs):
    """Calls sys.exit()."""
    sys.exit("no more")


def killed(inputs):
    """Is killed."""
    os.kill(os.getpid(), signal.SIGKILL)


def hungry(inputs):
    """Uses more memory than there is."""
    held = []
    while True:
        held.append(bytearray(16 << 20))


def sleeps(inputs):
    """Takes its time, and says so."""
    (ARTIFACTS / "begun.txt").write_text("begun")
    print("asleep", flush=True)
    time.sleep(float(inputs.get("seconds", 600)))
    return "rested"


def environment(inputs):
    """Gives its environment."""
    return dict(os.environ)


def lines(inputs):
    """Prints many lines."""
    for number in range(int(inputs["count"])):
        print(f"line {number}")
