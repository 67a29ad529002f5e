"""When which fault comes: drawn from one integer, so that a campaign that failed can be had again. Pure."""

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass

SEED = "CREWYARD_CAMPAIGN_SEED"


@dataclass(frozen=True)
class ScheduledFault:
    """One fault: seconds after the begin, which, and for how long where it lasts."""

    at: float
    kind: str
    seconds: float = 0.0


def requested_seed() -> int | None:
    """What `make campaign SEED=` says."""
    text = os.environ.get(SEED, "").strip()
    return int(text) if text else None


def seed(fallback: int) -> int:
    """The one that is given, else `fallback`, else (0) a fresh one."""
    return requested_seed() or fallback or random.SystemRandom().randrange(1, 10**9)


def draw(
    number: int, counts: Mapping[str, int], seconds: float, longest: float = 3.0
) -> tuple[ScheduledFault, ...]:
    """`counts` faults of each kind within `seconds`, in the order of their moments."""
    chance = random.Random(number)
    found = [
        ScheduledFault(round(chance.uniform(0, seconds), 3), kind, round(chance.uniform(0.1, longest), 3))
        for kind in sorted(counts)
        for _ in range(counts[kind])
    ]
    return tuple(sorted(found, key=lambda fault: (fault.at, fault.kind)))


def text(number: int, faults: tuple[ScheduledFault, ...], test: str) -> str:
    """The whole schedule, a line for each fault, and how to have it again."""
    lines = [f"{fault.at:8.3f} s  {fault.kind}  {fault.seconds:.3f} s" for fault in faults]
    return "\n".join([f"{len(faults)} faults; {again(number, test)}", *lines])


def again(number: int, test: str) -> str:
    """The command that draws the same once more."""
    return f"again: make campaign SEED={number} ONLY={test}"
