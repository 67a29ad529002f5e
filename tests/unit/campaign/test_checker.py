"""The campaign's checker finds every kind of violation, and none in a correct history."""

from dataclasses import replace

import pytest

from tests.campaign.checks.checker import KINDS, MANY, check
from tests.campaign.checks.content_checks import message_problems
from tests.campaign.checks.observed import (
    ApiRunRecord,
    CampaignPlan,
    Observations,
    ObservedEvent,
    ReceivedMessage,
    RequestedRun,
    SentAnswer,
    StatusObservation,
    StreamRead,
)
from tests.campaign.ledger import LedgerEntry

SHA = "5" * 64


def lines(run: str, at: float, token: str = "t1", steps: int = 2, end: bool = True) -> list[LedgerEntry]:
    entries = [LedgerEntry(run, token, "start", 0, at)]
    entries += [
        LedgerEntry(run, token, "mark", n, at + n / 10, data={"said": n}) for n in range(1, steps + 1)
    ]
    entries.append(LedgerEntry(run, token, "mark", 9, at + 0.5, data={"artifact": "a.bin", "sha256": SHA}))
    return [*entries, LedgerEntry(run, token, "end", 10, at + 0.9)] if end else entries


def stream(*types: str) -> tuple[ObservedEvent, ...]:
    steps = iter(range(1, 100))
    return tuple(
        ObservedEvent(
            number, kind, {"number": next(steps)} if kind == "campaign.step" else {"request_id": "q1"}
        )
        for number, kind in enumerate(types, 1)
    )


WHOLE = stream("run.started", "campaign.step", "campaign.step", "artifact", "run.completed")
KILLED = stream("run.started", "campaign.step", "campaign.step", "artifact", "run.failed")
ONE = ApiRunRecord("run-a", "succeeded", "", WHOLE, {"a.bin": SHA})
TWO = ApiRunRecord("run-b", "failed", "CrewError", KILLED, {"a.bin": SHA})
PLAN = CampaignPlan(
    (RequestedRun("run-a", {}), RequestedRun("run-b", {}, frozenset({"failed:CrewError"}))), concurrency=1
)
ENTRIES = [*lines("run-a", 1.0), *lines("run-b", 2.0)]
SIGHTS = tuple(
    StatusObservation(float(n), source, "run-a", status)
    for source in ("object", "list")
    for n, status in enumerate(("pending", "pending", "running", "succeeded", "succeeded"))
)
GOOD = Observations({"run-a": ONE, "run-b": TWO}, SIGHTS, (1, 1, 1))


def seen(one: ApiRunRecord) -> Observations:
    return replace(GOOD, runs={**GOOD.runs, one.run: one})


def sights(*statuses: str, source: str = "object") -> Observations:
    return replace(
        GOOD, sights=tuple(StatusObservation(float(n), source, "run-a", s) for n, s in enumerate(statuses))
    )


def events(*types: str) -> Observations:
    return seen(replace(ONE, events=stream(*types)))


MESSAGES = (
    ReceivedMessage("msg_1", "run.succeeded", "run_a"),
    ReceivedMessage("msg_2", "run.failed", "run_b"),
    ReceivedMessage("msg_2", "run.failed", "run_b"),
)
ASKING = CampaignPlan((RequestedRun("run-a", {"questions": 1}), PLAN.requested[1]), concurrency=1)


def received(*messages: ReceivedMessage) -> Observations:
    return replace(GOOD, messages=messages)


def got(*answers: int) -> list[LedgerEntry]:
    return [
        *ENTRIES,
        *(
            LedgerEntry("run-a", "t1", "mark", 8, 1.6, data={"request": "q1", "answer": one})
            for one in answers
        ),
    ]


def answered(*accepted: bool) -> Observations:
    """Two people answer q1 with 1, 2, …; `accepted` says to whom the API gave a 200."""
    sent = tuple(SentAnswer("run-a", "q1", value, yes) for value, yes in enumerate(accepted, 1))
    return replace(GOOD, answers=sent)


def test_no_violation_in_a_correct_history():
    assert check(GOOD, ENTRIES, PLAN) == []
    assert check(received(*MESSAGES), ENTRIES, PLAN) == []


@pytest.mark.parametrize(
    ("observed", "answer"), [(answered(False, True), 2), (answered(False, False), 1), (answered(True), 1)]
)
def test_a_crew_gets_the_accepted_answer_or_one_whose_response_was_lost(observed, answer):
    assert check(observed, got(answer), ASKING) == []


@pytest.mark.parametrize(
    ("observed", "answers"),
    [
        (answered(True, False), [2]),
        (answered(True, True), [1]),
        (answered(False, False), [3]),
        (answered(True), [1, 1]),
        (answered(True), []),
        (replace(answered(True), runs=events(*["input.requested"] * 2).runs), [1]),
    ],
)
def test_a_wrong_answer_is_found(observed, answers):
    assert ("answers", "run-a") in {(one.kind, one.run) for one in check(observed, got(*answers), ASKING)}


BROKEN = [
    ("doubled", "run-a", GOOD, [*ENTRIES, LedgerEntry("run-a", "t2", "start", 0, 4.0)]),
    ("doubled", "run-c", GOOD, [*ENTRIES, LedgerEntry("run-c", "t1", "start", 0, 4.0)]),
    ("lost", "run-a", replace(GOOD, runs={"run-b": TWO}), ENTRIES),
    ("lost", "run-a", seen(replace(ONE, status="running")), ENTRIES),
    ("lost", "run-a", GOOD, lines("run-b", 2.0)),
    ("wrong end", "run-a", seen(replace(ONE, status="failed", reason="RunnerLost", events=KILLED)), ENTRIES),
    ("wrong end", "run-b", seen(replace(TWO, reason="OOMKilled")), ENTRIES),
    ("backward", "run-a", sights("running", "pending"), ENTRIES),
    ("backward", "run-a", sights("succeeded", "running"), ENTRIES),
    ("backward", "run-a", sights("succeeded", "failed"), ENTRIES),
    ("backward", "run-a", sights("running", "failed", source="list"), ENTRIES),
    ("events", "run-a", events("run.started", "campaign.step", "campaign.step"), ENTRIES),
    ("events", "run-a", events("run.started", "campaign.step", "run.completed"), ENTRIES),
    ("events", "run-a", events("run.started", *["campaign.step"] * 3, "run.completed"), ENTRIES),
    ("events", "run-a", events("campaign.step", "campaign.step", "run.completed"), ENTRIES),
    (
        "events",
        "run-a",
        events("run.started", "run.started", *["campaign.step"] * 2, "run.completed"),
        ENTRIES,
    ),
    ("events", "run-a", events("run.started", *["campaign.step"] * 2, "run.failed"), ENTRIES),
    ("events", "run-a", events("run.started", *["campaign.step"] * 2, *["run.completed"] * 2), ENTRIES),
    ("events", "run-a", events("run.started", "run.completed", *["campaign.step"] * 2), ENTRIES),
    ("events", "run-a", seen(replace(ONE, events=WHOLE[:2] + WHOLE[3:])), ENTRIES),
    ("events", "run-a", seen(replace(ONE, events=(WHOLE[0], WHOLE[2], WHOLE[1], *WHOLE[3:]))), ENTRIES),
    ("artifacts", "run-a", seen(replace(ONE, artifacts={})), ENTRIES),
    ("artifacts", "run-a", seen(replace(ONE, artifacts={"a.bin": "6" * 64})), ENTRIES),
    ("crowded", "", GOOD, [*lines("run-a", 1.0), *lines("run-b", 1.4)]),
    ("crowded", "", GOOD, [*lines("run-a", 1.0, end=False), *lines("run-b", 1.4)]),
    ("active", "", replace(GOOD, active=(1, 0, 1)), ENTRIES),
    ("active", "", replace(GOOD, active=(1, 2)), ENTRIES),
    ("orphan", "", replace(GOOD, left=("pod run-z",)), ENTRIES),
    ("lost", "", replace(GOOD, missing=("a.bin of run-a has a row and no blob",)), ENTRIES),
    ("answers", "run-a", answered(True, True), got(1)),
    ("messages", "run-a", received(*MESSAGES[1:]), ENTRIES),
    ("messages", "run-a", received(*MESSAGES, ReceivedMessage("msg_3", "run.succeeded", "run_a")), ENTRIES),
    ("messages", "run-b", received(MESSAGES[0], ReceivedMessage("msg_2", "run.canceled", "run_b")), ENTRIES),
    ("messages", "run-a", received(*MESSAGES, ReceivedMessage("msg_3", "run.waiting", "run_a")), ENTRIES),
]


@pytest.mark.parametrize(("kind", "run", "observed", "entries"), BROKEN)
def test_each_violation_is_found(kind, run, observed, entries):
    assert (kind, run) in {(one.kind, one.run) for one in check(observed, entries, PLAN)}


def test_there_is_a_case_for_each_kind():
    assert {kind for kind, *_ in BROKEN} == set(KINDS)


def test_one_violation_is_reported_once():
    violations = check(GOOD, [*ENTRIES, LedgerEntry("run-a", "t2", "start", 0, 4.0)], PLAN)
    assert [violation.kind for violation in violations] == ["doubled"]


INFRA = replace(ONE, status="failed", reason="NodeLost", reported=False)
TOLERANT = replace(PLAN, requested=(replace(PLAN.requested[0], tolerant=True), PLAN.requested[1]))


@pytest.mark.parametrize(
    ("one", "entries"),
    [
        (replace(INFRA, events=stream("run.failed"), artifacts={}), lines("run-b", 2.0)),
        (replace(INFRA, events=stream("run.started", "campaign.step", "run.failed"), artifacts={}), ENTRIES),
        (replace(INFRA, events=KILLED), ENTRIES),
    ],
)
def test_infrastructure_faults_may_fail_a_run_after_at_most_one_start(one, entries):
    observed = replace(GOOD, runs={"run-a": one, "run-b": TWO}, sights=())
    assert check(observed, entries, TOLERANT) == []
    assert {violation.kind for violation in check(observed, entries, PLAN)} >= {"wrong end"}
    doubled = [*lines("run-a", 1.0), *lines("run-a", 5.0, "t2"), *lines("run-b", 2.0)]
    assert "doubled" in {violation.kind for violation in check(observed, doubled, TOLERANT)}


def test_infrastructure_faults_may_not_fail_all_of_many_runs():
    names = [f"run-{number}" for number in range(MANY)]
    requested = tuple(replace(PLAN.requested[0], run=name, tolerant=True) for name in names)
    plan = replace(PLAN, requested=requested)
    failed = {name: replace(INFRA, run=name, events=(), artifacts={}) for name in names}

    def floor_texts(runs):
        found = check(replace(GOOD, runs=runs, sights=()), [], plan)
        return [violation.text for violation in found if violation.run == ""]

    assert floor_texts(failed) == [f"none of {MANY} runs succeeded"]
    assert floor_texts(failed | {names[0]: replace(ONE, run=names[0])}) == []
    assert floor_texts({name: failed[name] for name in names[1:]}) == []


SUDDEN = replace(
    PLAN,
    requested=(
        replace(PLAN.requested[0], ends=frozenset({"succeeded", "failed:RunnerLost"})),
        PLAN.requested[1],
    ),
)
SHORT = stream("run.started", "campaign.step", "run.failed")
LOST_RUNNER = replace(
    ONE, status="failed", reason="RunnerLost", events=SHORT, artifacts={"a.bin": SHA}, reported=False
)


def sudden(one: ApiRunRecord, *reads: StreamRead, entries=ENTRIES) -> list[tuple[str, str]]:
    observed = replace(GOOD, runs={"run-a": one, "run-b": TWO}, sights=(), reads=reads)
    return [(violation.kind, violation.run) for violation in check(observed, entries, SUDDEN)]


def test_a_killed_runner_may_lose_only_unread_unacknowledged_events():
    assert sudden(LOST_RUNNER, StreamRead("run-a", SHORT[:2])) == []
    assert sudden(replace(LOST_RUNNER, artifacts={})) == []
    events_read = stream("run.started", "campaign.step", "campaign.step")
    assert sudden(LOST_RUNNER, StreamRead("run-a", events_read)) == [("events", "run-a")]
    # Never one from the middle, and never one that the crew did not emit.
    gap = (SHORT[0], replace(WHOLE[2], id=2), replace(SHORT[2], id=3))
    assert sudden(replace(LOST_RUNNER, events=gap)) == [("events", "run-a")]


def test_a_runner_that_reported_has_sent_everything():
    assert sudden(replace(LOST_RUNNER, reported=True)) == [("events", "run-a")]
    assert sudden(replace(LOST_RUNNER, reason="CrewError")) == [("wrong end", "run-a"), ("events", "run-a")]


@pytest.mark.parametrize(
    ("read", "consistent"),
    [
        (StreamRead("run-a", WHOLE[:3]), True),
        (StreamRead("run-a", WHOLE, whole=True), True),
        (StreamRead("run-a", WHOLE[:4], whole=True), False),
        (StreamRead("run-a", (WHOLE[0], WHOLE[2])), False),
        (StreamRead("run-a", (*WHOLE, WHOLE[4])), False),
        (StreamRead("run-a", (WHOLE[0], replace(WHOLE[1], data={"number": 7}))), False),
        (StreamRead("run-z", WHOLE[:1]), False),
        (StreamRead("run-z", ()), True),
    ],
)
def test_a_reader_gets_a_prefix_of_the_stored_events(read, consistent):
    violations = check(replace(GOOD, reads=(read,)), ENTRIES, PLAN)
    assert [(violation.kind, violation.run) for violation in violations] == (
        [] if consistent else [("events", read.run)]
    )


def test_an_unacknowledged_run_may_exist_and_counts_if_it_does():
    plan = replace(PLAN, requested=(*PLAN.requested, RequestedRun("", {}, acknowledged=False)))
    assert check(GOOD, ENTRIES, plan) == []
    made = ApiRunRecord("run-c", "succeeded", "", WHOLE, {"a.bin": SHA})
    entries = [*ENTRIES, *lines("run-c", 4.0)]
    assert check(seen(made), entries, plan) == []
    assert [one.kind for one in check(GOOD, entries, plan)] == ["lost"]
    twice = [*entries, LedgerEntry("run-c", "t2", "start", 0, 8.0)]
    assert [one.kind for one in check(seen(made), twice, plan)] == ["doubled"]


def test_a_canceled_run_needs_no_start():
    plan = replace(
        PLAN, requested=(replace(PLAN.requested[0], ends=frozenset({"canceled"})), PLAN.requested[1])
    )
    one = replace(ONE, status="canceled", events=stream("run.canceled"), artifacts={})
    observed = replace(GOOD, runs={"run-a": one, "run-b": TWO}, sights=())
    assert check(observed, lines("run-b", 2.0), plan) == []


def test_bare_jobs_are_checked_for_starts_and_outcomes_only():
    plan = CampaignPlan(
        (RequestedRun("job-a", {}), RequestedRun("job-b", {}, frozenset({"failed"}))), jobs=True
    )
    jobs = Observations(
        {"job-a": ApiRunRecord("job-a", "succeeded"), "job-b": ApiRunRecord("job-b", "failed")}
    )
    entries = [*lines("job-a", 1.0), *lines("job-b", 1.0)]
    assert check(jobs, entries, plan) == []
    again = [*entries, *lines("job-a", 3.0, "t2")]
    assert [one.kind for one in check(jobs, again, plan)] == ["doubled"]
    swapped = Observations(
        {"job-a": ApiRunRecord("job-a", "failed"), "job-b": ApiRunRecord("job-b", "failed")}
    )
    assert [one.kind for one in check(swapped, entries, plan)] == ["wrong end"]
    assert [one.kind for one in check(jobs, lines("job-a", 1.0), plan)] == ["lost"]


@pytest.mark.parametrize(
    ("status", "reported", "stopped", "count"),
    [
        ("failed", True, True, 0),
        ("canceled", True, True, 0),
        ("failed", False, False, 0),
        ("failed", True, False, 1),
        ("succeeded", True, False, 1),
    ],
)
def test_only_a_killed_or_stopped_runner_may_lack_the_event_of_a_question(
    status: str, reported: bool, stopped: bool, count: int
) -> None:
    messages = [
        ReceivedMessage("msg_1", f"run.{status}", "run_a"),
        ReceivedMessage("msg_2", "run.waiting", "run_a"),
    ]
    seen = ApiRunRecord("run-a", status, reported=reported, stopped=stopped)
    assert len(list(message_problems(messages, {"run-a": seen}))) == count
