"""Accounting of ended runs and builds into the usage of their projects.

Called by `api.maintenance.loops`, and before a run is erased.
Asynchronous: the end is recorded first and accounted later. A crash loses nothing, since the next batch
finds every run and build that is not marked as accounted.
"""

import structlog

from api.store.errors import Missing, StoreUnavailable
from api.store.index.deployments.build_times import build_ms, ended_at
from api.store.index.usage import EndedRun
from api.store.store import Store

log = structlog.get_logger()

BATCH_SIZE = 100
NEWEST = 2**63 - 1
"""An order above all runs."""


async def account_batch(store: Store) -> int:
    """Account a batch and return its size. Raises StoreUnavailable; the remaining items stay unaccounted."""
    runs = await store.usage.ended_runs(BATCH_SIZE)
    for run in runs:
        await _account(store, run)
    builds = await store.usage.ended_builds(BATCH_SIZE)
    for build in builds:
        ended = ended_at(build)
        await store.usage.account_build(build.name, ended, build_ms(build, ended))
    return len(runs) + len(builds)


async def measure_batch(store: Store, below: int = NEWEST) -> int | None:
    """Record what runs used that a version before the columns of usage accounted, the newest first.

    `below` is the result of the last call. None: there are no more. A run whose log cannot be read now is
    left out until the process starts again. Raises StoreUnavailable.
    """
    runs = await store.usage.unmeasured_runs(below, BATCH_SIZE)
    tokens = dict[str, tuple[int, int]]()
    for run in runs:
        try:
            tokens[run.name] = await _tokens(store, run) if run.claimed else (0, 0)
        except (StoreUnavailable, Missing):
            log.exception("log unreadable, usage of the run unknown", run=run.name)
    await store.usage.record_usage(tokens)
    return runs[-1].ord if runs else None


async def account_run(store: Store, name: str) -> None:
    """Account an ended run, unless it is accounted already. Raises StoreUnavailable."""
    for run in await store.usage.ended_runs(1, name):
        await _account(store, run)


async def _account(store: Store, run: EndedRun) -> None:
    prompt_tokens, completion_tokens = await _tokens(store, run) if run.claimed else (0, 0)
    await store.usage.account_run(run.name, prompt_tokens, completion_tokens)


async def _tokens(store: Store, run: EndedRun) -> tuple[int, int]:
    try:
        return await store.events.tokens(run.name)
    except (ValueError, LookupError, TypeError, AttributeError):
        # One unreadable log must not block the accounting of all other runs.
        log.exception("log unreadable, tokens not counted", run=run.name)
        return 0, 0
