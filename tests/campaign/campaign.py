"""One campaign on one test bed: workload, watchers, counted faults, and the verdict at the end.

    async with campaign("controller-kills", testbed, concurrency=10) as found:
        await found.work.post(script)
        await found.fault("controller SIGKILL", testbed.controller.restart())
    demand(found.report)

Called by the tests.
"""

import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterable

from crds.names import id_of
from tests.campaign.answers import RunAnswers
from tests.campaign.checks import checker, observation
from tests.campaign.checks.observed import (
    CANCELED,
    SUCCEEDED,
    CampaignPlan,
    Observations,
    ReceivedMessage,
    StreamRead,
)
from tests.campaign.ledger import LedgerEntry
from tests.campaign.reader import EventReaders
from tests.campaign.receiver import NotificationReceiver
from tests.campaign.reports.report import CampaignReport, ReportColumn
from tests.campaign.store.snapshot import in_directory
from tests.campaign.testbed import ApiAway, CampaignTestbed
from tests.campaign.watcher import StatusWatcher
from tests.campaign.workload import Workload

END_SECONDS = 300.0
"""Until all that was asked for has ended, after the last fault, on a slow machine."""
MESSAGE_SECONDS = 120.0
"""Until the messages about the ends of all runs have arrived."""
GONE_SECONDS = 60.0
"""For Jobs of which some are lost permanently."""


class Campaign:
    """What a test works with; `report` is there once the block has ended."""

    def __init__(
        self,
        name: str,
        testbed: CampaignTestbed,
        concurrency: int,
        seed: int | None,
        tolerant: bool,
        rewound: bool,
    ) -> None:
        self.name, self.testbed, self.seed = name, testbed, seed
        self._rewound = rewound
        self.work = Workload(testbed, tolerant)
        self.jobs = Workload(testbed, tolerant)
        self.faults: Counter[str] = Counter()
        self.healed: list[float] = []
        self.notes: list[str] = []
        self.more: list[checker.Violation] = []
        """Violations that the test itself found."""
        self.readers = EventReaders(testbed)
        self.answers = RunAnswers(testbed, seed)
        self.receiver: NotificationReceiver | None = None
        self._reads: list[StreamRead] = []
        self.watcher = StatusWatcher(testbed)
        self.job_watcher = StatusWatcher(testbed, jobs=True)
        self.end_seconds = END_SECONDS
        self.report = CampaignReport(name, self.faults, ())
        self._concurrency = concurrency

    async def fault(self, kind: str, doing: Awaitable[object]) -> None:
        """Inject one: `doing` ends when it is over."""
        self.faults[kind] += 1
        try:
            await doing
        finally:
            self.healed.append(time.time())

    async def read_events(self, run: str) -> None:
        """Read the events of a run so far, if the API responds: later none of them may be missing."""
        try:
            self._reads.append(StreamRead(run, await observation.events(self.testbed, run, seconds=0)))
        except ApiAway:
            return
        except AssertionError:
            # The API may not have seen a Run yet that it did not create.
            if not any(one.run == run and one.object_only for one in self.work.requested):
                raise

    async def judge(self) -> None:
        """Wait for all ends, gathers, checks."""
        testbed = self.testbed
        if self._rewound:
            for one in self.work.requested:
                self.work.allow(one.run, CANCELED)
        await self.watcher.wait_ended({one.run for one in self.work.requested if one.run}, self.end_seconds)
        jobs_wait = GONE_SECONDS if self._rewound else self.end_seconds
        await self.job_watcher.wait_ended({one.run for one in self.jobs.requested}, jobs_wait)
        reads, late = await self.readers.wait_results(self.end_seconds)
        left = await observation.left(testbed, alike=not self._rewound)
        runs = await observation.runs(testbed)
        missing, kept = await observation.stored(testbed, self.work.uploads)
        entries = testbed.ledger.entries()
        of_jobs = {one.run for one in self.jobs.requested}
        mine = [entry for entry in entries if entry.run not in of_jobs]
        sights = [sight for sight in self.watcher.sights if sight.source == "list" or not self._rewound]
        self.answers.check()
        seen = Observations(
            runs,
            tuple(sights),
            tuple(self._settled()),
            (*left, *kept),
            missing,
            (*self._reads, *reads),
            tuple(self.answers.sent),
            await self._messages(runs),
        )
        asked = self.work.requested
        if self._rewound:
            begun = {entry.run for entry in mine}
            asked = [one for one in asked if not one.object_only or one.run in begun or one.run in runs]
        found = self.more + late + checker.check(seen, mine, CampaignPlan(tuple(asked), self._concurrency))
        columns = [ReportColumn("Runs", len(runs), tuple(found), self._recovery(self.watcher, mine))]
        if self.jobs.requested:
            theirs = [entry for entry in entries if entry.run in of_jobs]
            jobs = await observation.jobs(testbed)
            plan = CampaignPlan(tuple(self.jobs.requested), jobs=True)
            of_them = checker.check(Observations(jobs, tuple(self.job_watcher.sights)), theirs, plan)
            columns.append(
                ReportColumn("Jobs", len(jobs), tuple(of_them), self._recovery(self.job_watcher, theirs))
            )
        notes = [*self.notes, *([self.readers.note] if reads else [])]
        if self.answers.sent:
            accepted = sum(one.accepted for one in self.answers.sent)
            notes.append(f"{accepted} of {len(self.answers.sent)} answers to questions were accepted")
        if seen.messages is not None:
            notes.append(f"{len(seen.messages)} messages of a notification arrived")
        if any(one.tolerant for one in asked):
            succeeded = sum(run.status == SUCCEEDED for run in runs.values())
            notes.append(f"{succeeded} of {len(runs)} runs succeeded; the others may fail for infrastructure")
        if testbed.read_store is None and not in_directory(testbed.api):
            notes.append("rows and bytes are not compared: the store is not in the API server's directory")
        self.report = CampaignReport(self.name, self.faults, tuple(columns), self.seed, tuple(notes))

    async def _messages(self, runs: Iterable[str]) -> tuple[ReceivedMessage, ...] | None:
        if self.receiver is None:
            return None
        await self.receiver.wait_ended([id_of(run) for run in runs], MESSAGE_SECONDS)
        return tuple(self.receiver.messages)

    def _settled(self) -> Iterable[int]:
        """The counts from the first active deployment on."""
        counts = self.watcher.active
        first = next((number for number, count in enumerate(counts) if count), len(counts))
        return counts[first:]

    def waited(self, watcher: StatusWatcher, run: str) -> float:
        """Seconds from the last output of a run's crew to the observed end."""
        last = _last_words(entry for entry in self.testbed.ledger.entries() if entry.run == run)
        return watcher.ended.get(run, time.time()) - last.get(run, time.time())

    def _recovery(self, watcher: StatusWatcher, entries: Iterable[LedgerEntry]) -> float:
        last = _last_words(entries)
        waits = [0.0]
        for run, ended in watcher.ended.items():
            begun = last.get(run)
            if begun is not None:
                waits.append(ended - max([begun, *(at for at in self.healed if begun <= at <= ended)]))
        return max(waits)


def _last_words(entries: Iterable[LedgerEntry]) -> dict[str, float]:
    return {entry.run: entry.at for entry in entries}


@contextlib.asynccontextmanager
async def campaign(
    name: str,
    testbed: CampaignTestbed,
    concurrency: int = 10,
    seed: int | None = None,
    tolerant: bool = False,
    rewound: bool = False,
) -> AsyncIterator[Campaign]:
    """A campaign; the verdict is passed when the block ends without an error.

    `concurrency` is the limit of the test bed's plan, `seed` that of the schedule; `tolerant` as in
    `observed.RequestedRun`. With `rewound` the cluster itself returns to an older state: objects are then no
    evidence, and lost Runs may end as canceled.
    """
    found = Campaign(name, testbed, concurrency, seed, tolerant, rewound)
    async with (
        found.watcher.watching(),
        found.job_watcher.watching(),
        found.readers.reading(),
        found.answers.answering(),
    ):
        yield found
        await found.judge()
