"""Comparison of a run's events and artifacts with the ledger. Pure; called by the checker."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from crds.names import id_of
from tests.campaign import ledger
from tests.campaign.checks.observed import (
    SUCCEEDED,
    TERMINAL,
    ApiRunRecord,
    ReceivedMessage,
    SentAnswer,
    StreamRead,
)
from tests.campaign.ledger import LedgerEntry

STARTED = "run.started"
STEP = "campaign.step"
REQUESTED, WAITING = "input.requested", "run.waiting"
LAST = {"succeeded": "run.completed", "failed": "run.failed", "canceled": "run.canceled"}


def events(seen: ApiRunRecord, mine: Iterable[LedgerEntry], broken: bool) -> Iterator[str]:
    """What is wrong with the events of an ended run. `broken`: its runner died, and the last ones with it."""
    lines = list(mine)
    ids = [event.id for event in seen.events]
    if ids != list(range(1, len(ids) + 1)):
        yield f"ids are not 1 to {len(ids)}: {_short(ids)}"
    types = [event.type for event in seen.events]
    terminal = [kind for kind in types if kind in LAST.values()]
    if terminal != [LAST[seen.status]] or types[-1:] != terminal:
        yield f"the terminal events are {terminal} at the end of {len(types)}"
    begun = any(line.what == ledger.START for line in lines)
    if types.count(STARTED) != (1 if types[:1] == [STARTED] else 0) or (begun and types[:1] != [STARTED]):
        yield f"{types.count(STARTED)} times {STARTED}, the first event is {types[:1]}"
    steps = [int(event.data.get("number") or 0) for event in seen.events if event.type == STEP]
    if steps != list(range(1, len(steps) + 1)):
        yield f"steps are lost, doubled or out of order: {_short(steps)}"
    acknowledged_steps = max((int(line.data.get("said") or 0) for line in lines), default=0)
    over = any(line.what == ledger.END for line in lines)
    # A crew says a step before it tells the ledger: of one that was cut off there may be one more.
    most = acknowledged_steps if over else acknowledged_steps + 1
    if len(steps) > most or (len(steps) < acknowledged_steps and not broken):
        yield f"{len(steps)} steps where the crew took {acknowledged_steps}"


def reader_problems(
    reads: Iterable[StreamRead], runs: Mapping[str, ApiRunRecord]
) -> Iterator[tuple[str, str]]:
    """Yield runs whose reader got wrong or too few events: an event that was sent once is on the disk."""
    for read in reads:
        seen = runs.get(read.run)
        there = seen.events if seen else ()
        same = there[: len(read.events)] == read.events
        if not same or (read.whole and len(read.events) < len(there)):
            ids = _short([event.id for event in read.events])
            yield read.run, f"a reader got {len(read.events)} events where there are {len(there)}: {ids}"


def artifacts(seen: ApiRunRecord, mine: Iterable[LedgerEntry], broken: bool) -> Iterator[str]:
    """What is wrong with the artifacts of an ended run."""
    recorded = {
        str(line.data["artifact"]): str(line.data["sha256"]) for line in mine if "artifact" in line.data
    }
    for name, sha256 in recorded.items():
        stored = seen.artifacts.get(name)
        if stored is None:
            if not broken:
                yield f"{name} is lost"
        elif stored != sha256:
            yield f"{name} has the sha256 {stored}, not {sha256}"


def answers(
    seen: ApiRunRecord, mine: Iterable[LedgerEntry], sent: Sequence[SentAnswer], questions: int
) -> Iterator[str]:
    """What is wrong with the answers of an ended run whose script has this many questions.

    An answer may be accepted whose response was lost: then none of those that were sent is known as accepted.
    """
    got = [(str(line.data["request"]), line.data["answer"]) for line in mine if "answer" in line.data]
    if len(got) < questions and seen.status == SUCCEEDED:
        yield f"succeeded with {len(got)} of {questions} answers"
    for request, count in Counter(request for request, _ in got).items():
        if count > 1:
            yield f"the crew got {count} answers to {request}"
    for request in sorted({answer.request for answer in sent} | {request for request, _ in got}):
        to_it = [answer for answer in sent if answer.request == request]
        accepted = [answer.value for answer in to_it if answer.accepted]
        if len(accepted) > 1:
            yield f"{len(accepted)} answers to {request} were accepted"
        possible = accepted or [answer.value for answer in to_it]
        if wrong := [value for name, value in got if name == request and value not in possible]:
            yield f"the crew got {wrong} as answer to {request}, not one of {possible}"
    for kind in (REQUESTED, "input.received"):
        counts = Counter(event.data.get("request_id") for event in seen.events if event.type == kind)
        if repeated := sorted(str(request) for request, count in counts.items() if count > 1):
            yield f"{kind} is repeated for {', '.join(repeated)}"


def message_problems(
    messages: Collection[ReceivedMessage], runs: Mapping[str, ApiRunRecord]
) -> Iterator[tuple[str, str]]:
    """Yield runs whose end was not announced at least once, with one id, and as it was."""
    for name, seen in runs.items():
        if seen.status not in TERMINAL:
            continue
        mine = [one for one in messages if one.run == id_of(name)]
        ends = {(one.id, one.type) for one in mine if one.type != WAITING}
        if [kind for _, kind in ends] != [f"run.{seen.status}"]:
            kinds = ", ".join(sorted(kind for _, kind in ends))
            yield name, f"{len(ends)} messages about its end ({kinds or 'none'}) where it is {seen.status}"
        # A runner that was killed or stopped may lack the response to its last question, and so its event.
        asked = sum(event.type == REQUESTED for event in seen.events)
        waiting = {one.id for one in mine if one.type == WAITING}
        if len(waiting) > asked and seen.reported and not seen.stopped:
            yield name, f"{len(waiting)} messages about {asked} questions"


def _short(numbers: list[int]) -> str:
    return str(numbers) if len(numbers) <= 30 else f"{numbers[:30]}…"
