"""`make bench`: all measurements, or those named as arguments: start, build, commit, memory."""

import asyncio
import sys
from datetime import UTC, datetime

from bench import build, commit, crew, facts, figures, memory, start
from tests.e2e.yard import Yard

ALL = ("memory", "start", "commit", "build")
PAIRS = 21


async def main(wanted: list[str]) -> None:
    """Takes the measurements and prints a line for each."""
    yard = await Yard.open()
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {facts.machine()}", flush=True)
    try:
        measured = await crew.prepare(yard)
        if "memory" in wanted:
            before = await memory.both(yard)
            await memory.fifty_runs(measured)
            after = await memory.both(yard)
            for name, idle, later in zip(("controller", "api"), before, after, strict=True):
                print(f"memory of {name}: {idle:.0f} MiB idle, {later:.0f} MiB after 50 runs", flush=True)
        if "start" in wanted:
            starts, ends = await start.measure(measured, PAIRS)
            print("applied → first instruction:", figures.compare(starts).line("s"), flush=True)
            print("crew's end → terminal status:", figures.compare(ends).line("s"), flush=True)
        if "commit" in wanted:
            seconds = await commit.measure(yard, 10)
            print("push → Deployment object (polled every 1 s):", figures.spread(seconds, "s"), flush=True)
        if "build" in wanted:
            first, again = await build.measure(yard, 9)
            print(f"first build of the LangGraph example, POST → active: {first:.1f} s", flush=True)
            print("code-only redeploy, POST → active:", figures.spread(again, "s"), flush=True)
        await yard.kubectl("delete", "cproj", measured.project, "--wait=false")
    finally:
        await yard.close()


if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if name not in ALL]
    if unknown:
        sys.exit(f"no measurement {unknown[0]!r}; there are {', '.join(ALL)}")
    asyncio.run(main(sys.argv[1:] or list(ALL)))
