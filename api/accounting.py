"""Adds what ended runs and builds used to the usage of their projects. Called by `api.background`.

Nothing waits for it: an end is recorded first, and accounted when it is found here. A crash in between loses
nothing, since what is not marked is found again.
"""

from datetime import datetime, timedelta

import structlog

from api.store.index.usage import EndedBuild, EndedRun
from api.store.store import Store
from crds import conditions
from crds.times import parse_time

log = structlog.get_logger()

BATCH = 100


async def account(store: Store) -> int:
    """Accounts a batch; gives how many there were. Raises StoreUnavailable, with the rest still to do."""
    runs = await store.usage.ended_runs(BATCH)
    for run in runs:
        prompt, completion = await _tokens(store, run) if run.claimed else (0, 0)
        await store.usage.account_run(run.name, prompt, completion)
    builds = await store.usage.ended_builds(BATCH)
    for build in builds:
        ended = ended_at(build)
        await store.usage.account_build(build.name, ended, build_ms(build, ended))
    return len(runs) + len(builds)


async def _tokens(store: Store, run: EndedRun) -> tuple[int, int]:
    try:
        return await store.events.tokens(run.name)
    except (ValueError, LookupError, TypeError, AttributeError):
        # One log that cannot be read must not keep all others from being accounted.
        log.exception("a log cannot be read; its tokens are not counted", run=run.name)
        return 0, 0


def ended_at(build: EndedBuild) -> datetime:
    """When a build ended: when the condition Built last changed, or else the last of all conditions."""
    built = conditions.find(build.conditions, conditions.BUILT)
    told = [built] if built else list(build.conditions)
    times = [parse_time(str(one["lastTransitionTime"])) for one in told if one.get("lastTransitionTime")]
    return max(times, default=build.building_at or _LONG_AGO)


def build_ms(build: EndedBuild, ended: datetime) -> int:
    """How long it was built, waiting not included; 0 where an image was there already."""
    begun = build.building_at
    return 0 if begun is None else max(0, (ended - begun) // timedelta(milliseconds=1))


_LONG_AGO = parse_time("1970-01-01T00:00:00Z")
