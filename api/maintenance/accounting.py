"""Adds what ended runs and builds used to the usage of their projects. Called by `api.maintenance.loops`.

Nothing waits for it: an end is recorded first, and accounted when it is found here. A crash in between loses
nothing, since what is not marked is found again.
"""

import structlog

from api.store.index.build_times import build_ms, ended_at
from api.store.index.usage import EndedRun
from api.store.store import Store

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
