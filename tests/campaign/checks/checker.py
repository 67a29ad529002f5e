"""Check of the guarantees against the ledger of the crews. Pure; independent of the product.

    check(observed, ledger, plan) -> [Violation("doubled", "run-a", "2 starts"), …]

Called by `tests.campaign.campaign`, for Runs and for bare Jobs alike.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.campaign import ledger
from tests.campaign.checks.content_checks import (
    answers,
    artifacts,
    events,
    message_problems,
    reader_problems,
)
from tests.campaign.checks.observed import (
    CANCELED,
    FAILED,
    INFRASTRUCTURE,
    RUNNING,
    SUCCEEDED,
    TERMINAL,
    ApiRunRecord,
    CampaignPlan,
    Observations,
    RequestedRun,
    StatusObservation,
)
from tests.campaign.ledger import LedgerEntry

LOST, DOUBLED, WRONG_END, BACKWARD = "lost", "doubled", "wrong end", "backward"
EVENTS, ARTIFACTS, CROWDED, ACTIVE, ORPHAN = "events", "artifacts", "crowded", "active", "orphan"
MANY = 5
"""Runs of which not all may fail for infrastructure."""
ANSWERS, MESSAGES = "answers", "messages"
KINDS = (
    LOST,
    DOUBLED,
    WRONG_END,
    BACKWARD,
    EVENTS,
    ARTIFACTS,
    CROWDED,
    ACTIVE,
    ORPHAN,
    ANSWERS,
    MESSAGES,
)


@dataclass(frozen=True)
class Violation:
    """One promise that was broken, of one run where it is a run's."""

    kind: str
    run: str
    text: str


def check(observed: Observations, entries: Iterable[LedgerEntry], plan: CampaignPlan) -> list[Violation]:
    """All violations; none where everything was kept."""
    lines = list(entries)
    found = list(_of_runs(observed, lines, plan))
    found += [Violation(EVENTS, run, text) for run, text in reader_problems(observed.reads, observed.runs)]
    if observed.messages is not None:
        of_messages = message_problems(observed.messages, observed.runs)
        found += [Violation(MESSAGES, run, text) for run, text in of_messages]
    found += _forward(observed.sights, observed.runs)
    if plan.concurrency:
        found += _crowded(lines, plan.concurrency)
    looks = [count for count in observed.active if count != 1]
    if looks:
        found.append(Violation(ACTIVE, "", f"{len(looks)} looks saw {sorted(set(looks))} active deployments"))
    if any(one.tolerant for one in plan.requested):
        found += _useless(observed.runs, plan)
    found += [Violation(LOST, "", text) for text in observed.missing]
    found += [Violation(ORPHAN, "", text) for text in observed.left]
    return found


def _of_runs(observed: Observations, lines: list[LedgerEntry], plan: CampaignPlan) -> Iterator[Violation]:
    by_run: dict[str, list[LedgerEntry]] = {}
    for line in lines:
        by_run.setdefault(line.run, []).append(line)
    asked = {one.run: one for one in plan.requested if one.run}
    scripts = [one for one in plan.requested if not one.run]
    for name in sorted({*asked, *observed.runs, *by_run}):
        mine = by_run.get(name, [])
        one = asked.get(name)
        seen = observed.runs.get(name)
        if one is None and not scripts:
            yield Violation(DOUBLED, name, "not requested")
        tokens = {entry.token for entry in mine if entry.what == ledger.START}
        if len(tokens) > 1:
            yield Violation(DOUBLED, name, f"{len(tokens)} starts")
        if seen is None or seen.status not in TERMINAL:
            if mine or (one is not None and one.acknowledged):
                yield Violation(LOST, name, f"no end: {seen.status if seen else 'unknown to the API'}")
            elif seen is not None:
                yield Violation(ORPHAN, name, f"{seen.status} permanently, without an acknowledged request")
            continue
        # A request without a response may have created it all the same: it is a run like others.
        requested = one or scripts[0]
        yield from _end(requested, seen, mine, len(tokens), plan)
        sent = [answer for answer in observed.answers if answer.run == name]
        questions = int(requested.script.get("questions", 0))
        for text in answers(seen, mine, sent, questions):
            yield Violation(ANSWERS, name, text)


def _useless(runs: Mapping[str, ApiRunRecord], plan: CampaignPlan) -> Iterator[Violation]:
    """Each of many runs may fail for infrastructure, but not all that can succeed."""
    hopeful = [one.run for one in plan.requested if SUCCEEDED in one.ends and one.run in runs]
    if len(hopeful) >= MANY and not any(runs[run].status == SUCCEEDED for run in hopeful):
        yield Violation(WRONG_END, "", f"none of {len(hopeful)} runs succeeded")


def _end(
    one: RequestedRun, seen: ApiRunRecord, mine: list[LedgerEntry], starts: int, plan: CampaignPlan
) -> Iterator[Violation]:
    end = f"{seen.status}:{seen.reason}" if seen.status == FAILED and not plan.jobs else seen.status
    broken = one.tolerant and seen.status == FAILED and (plan.jobs or seen.reason in INFRASTRUCTURE)
    if end not in one.ends and not broken:
        yield Violation(WRONG_END, seen.run, f"{end} instead of {' or '.join(sorted(one.ends))}")
    if not starts and not broken and seen.status != CANCELED:
        yield Violation(LOST, seen.run, f"{end} without a start")
    if plan.jobs:
        return
    # Unacknowledged data is lost with the runner when the cluster or a fault removes it.
    cut = seen.reason in INFRASTRUCTURE or (one.tolerant and seen.status == CANCELED)
    for text in events(seen, mine, cut and not seen.reported):
        yield Violation(EVENTS, seen.run, text)
    for text in artifacts(seen, mine, cut):
        yield Violation(ARTIFACTS, seen.run, text)


def _forward(sights: Iterable[StatusObservation], runs: Mapping[str, ApiRunRecord]) -> Iterator[Violation]:
    """Each source sees a run move forward only; all see the same end."""
    last: dict[tuple[str, str], str] = {}
    ends = {name: seen.status for name, seen in runs.items() if seen.status in TERMINAL}
    reported_runs: set[str] = set()
    for sight in sights:
        before = last.get((sight.source, sight.run), "")
        last[(sight.source, sight.run)] = sight.status
        if sight.run in reported_runs:
            continue
        if (before in TERMINAL and sight.status != before) or _rank(sight.status) < _rank(before):
            reported_runs.add(sight.run)
            yield Violation(BACKWARD, sight.run, f"{sight.source}: {before}, then {sight.status}")
        elif sight.status in TERMINAL and ends.setdefault(sight.run, sight.status) != sight.status:
            reported_runs.add(sight.run)
            yield Violation(BACKWARD, sight.run, f"{sight.source}: {sight.status}, others {ends[sight.run]}")


def _rank(status: str) -> int:
    return 2 if status in TERMINAL else 1 if status == RUNNING else 0


def _crowded(lines: list[LedgerEntry], most: int) -> Iterator[Violation]:
    """At no moment more crews at work than the plan allows; one without an end counts to its last output."""
    spans: dict[tuple[str, str], list[float]] = {}
    for line in lines:
        span = spans.setdefault((line.run, line.token), [line.at, line.at])
        span[0], span[1] = min(span[0], line.at), max(span[1], line.at)
    # An end comes before a start of the same moment.
    steps = sorted([(start, 1) for start, _ in spans.values()] + [(end, -1) for _, end in spans.values()])
    now = worst = 0
    for _, step in steps:
        now += step
        worst = max(worst, now)
    if worst > most:
        yield Violation(CROWDED, "", f"{worst} crews at once where {most} are allowed")
