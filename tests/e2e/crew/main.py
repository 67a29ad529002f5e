"""A crew that succeeds, in several ways."""

import asyncio
import logging
import os
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


def sleeps(inputs):
    """Takes its time, and says so; gives when it began and ended."""
    begun = time.time()
    (ARTIFACTS / "begun.txt").write_text("begun")
    print("asleep", flush=True)
    time.sleep(float(inputs.get("seconds", 600)))
    return {"begun": begun, "ended": time.time()}


def environment(inputs):
    """Gives its environment."""
    return dict(os.environ)


def lines(inputs):
    """Prints many lines, some of them a second if that is asked for."""
    for number in range(int(inputs["count"])):
        print(f"line {number}", flush=True)
        time.sleep(float(inputs.get("pause", 0)))
    return inputs["count"]
