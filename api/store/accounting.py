"""Accounting of ended runs and builds into the usage of their projects.

Called by `api.maintenance.loops`, and before a run is erased.
Asynchronous: the end is recorded first and accounted later. A crash loses nothing, since the next batch
finds every run and build that is not marked as accounted.
"""

from datetime import UTC, datetime

import structlog

from api.store.errors import Missing, StoreUnavailable
from api.store.index.deployments.build_times import build_ms, ended_at
from api.store.index.usage import EndedRun
from api.store.postponed_runs import PostponedRuns
from api.store.store import Store
from api.store.token_counts import TokenCounts

log = structlog.get_logger()

BATCH_SIZE = 100
NEWEST = 2**63 - 1
"""An order above all runs."""


async def account_batch(
    store: Store, postponed: PostponedRuns | None = None, now: datetime | None = None
) -> int:
    """Account a batch and return how many runs and builds of it are accounted.

    A run whose log cannot be read is added to `postponed`, and does not block others. Raises StoreUnavailable
    if the index cannot be written, or if nothing could be accounted.
    """
    postponed, now = postponed or PostponedRuns(), now or datetime.now(UTC)
    done, failure = 0, None
    for ended in await store.usage.ended_runs(BATCH_SIZE, excluded=postponed.names(now)):
        try:
            tokens = await _tokens(store, ended)
        except (StoreUnavailable, Missing) as error:
            # Where the database is away, this log is not the cause.
            await store.ready()
            log.error("log unreadable, will account later", run=ended.name, error=str(error))
            failure = error
            postponed.add(ended.name, now)
            continue
        await store.usage.account_run(ended.name, tokens)
        done += 1
    for build in await store.usage.ended_builds(BATCH_SIZE):
        end = ended_at(build)
        await store.usage.account_build(build.name, end, build_ms(build, end))
        done += 1
    if failure and not done:
        raise StoreUnavailable(f"no run can be accounted: {failure}") from failure
    return done


async def measure_batch(store: Store, below: int = NEWEST) -> int | None:
    """Record what runs used that a version before the columns of usage accounted, the newest first.

    `below` is the result of the last call. None: there are no more. A run whose log cannot be read now is
    left out until the process starts again. Raises StoreUnavailable.
    """
    runs = await store.usage.unmeasured_runs(below, BATCH_SIZE)
    tokens = dict[str, TokenCounts]()
    for run in runs:
        try:
            tokens[run.name] = await _tokens(store, run)
        except (StoreUnavailable, Missing):
            log.exception("log unreadable, usage of the run unknown", run=run.name)
    await store.usage.record_usage(tokens)
    return runs[-1].ord if runs else None


async def account_run(store: Store, name: str) -> None:
    """Account an ended run, unless it is accounted already. Raises StoreUnavailable."""
    for run in await store.usage.ended_runs(1, name):
        await store.usage.account_run(run.name, await _tokens(store, run))


async def _tokens(store: Store, run: EndedRun) -> TokenCounts:
    if not run.claimed:
        return TokenCounts()
    try:
        return await store.events.tokens(run.name)
    except (ValueError, LookupError, TypeError, AttributeError):
        # One unreadable log must not block the accounting of all other runs.
        log.exception("log unreadable, tokens not counted", run=run.name)
        return TokenCounts()
