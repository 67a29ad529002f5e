"""Ways to ask a person."""

import asyncio
import json
import time

from crewyard_runtime import ask, ask_async

SCHEMA = {"type": "object", "required": ["way"], "properties": {"way": {"type": "string"}}}


def asks(inputs):
    """Asks for an object."""
    return ask("Which way?", schema=SCHEMA)


def holds(inputs):
    """Waits for an answer; gives when it began and ended."""
    begun = time.time()
    ask("Go on?")
    return {"begun": begun, "ended": time.time()}


def reads(inputs):
    """Asks with input()."""
    return input("Which way? ")


async def asks_twice(inputs):
    """Asks two questions at the same time."""
    return await asyncio.gather(ask_async("First?"), ask_async("Second?", choices=["a", "b"]))


def measures(inputs):
    """Returns the size of the answer."""
    return len(json.dumps(ask("Text?"), ensure_ascii=False))
