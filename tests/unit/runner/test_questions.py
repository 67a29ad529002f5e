"""Crews that ask a person, in the real runner against the fake API."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from runner.crewyard_runtime.frameworks import langgraph_questions
from runner.crewyard_runtime.questions import ask as ask_module
from runner.crewyard_runtime.questions.ask import ask
from runner.pid1.api.http import HTTPResponse
from runner.pid1.output.event_queue import EventQueue
from runner.pid1.output.mask import SecretMask
from runner.pid1.questions import Questions, WaitingTime
from tests.unit.runner.conftest import wait_until
from tests.unit.runner.test_warm import WARM

ASKS = """
from crewyard_runtime import ask
def kickoff():
    print("before")
    return [ask("Which way?", schema={"type": "string"}), ask("Go?", choices=["yes", "no"])]
"""
WITHDRAWS = """
import asyncio, pathlib
from crewyard_runtime import ask_async
async def exists(name):
    while not pathlib.Path(name).exists():
        await asyncio.sleep(0.01)
async def kickoff():
    question = asyncio.create_task(ask_async("?"))
    await exists("withdraw")
    question.cancel()
    await exists("end")
    return "went on"
"""


@pytest.fixture(autouse=True)
def answerable(api: Any) -> None:
    api.ask_seconds = 86400


def told(api: Any, *types: str) -> list[tuple[str, dict[str, Any]]]:
    return [(event["type"], event["data"]) for event in api.events if event["type"] in types]


async def test_a_crew_gets_its_answers(pod: Any, api: Any) -> None:
    api.answers = {"q1": "north", "q2": "yes"}
    pod.crew(ASKS)
    await pod.run()
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", ["north", "yes"])
    assert api.questions["q1"]["schema"] == {"type": "string"}
    assert api.questions["q2"]["choices"] == ["yes", "no"]
    expires = {"expires_at": "2026-11-22T10:00:00Z"}
    asked = {"prompt": "Which way?", "schema": {"type": "string"}, **expires}
    assert told(api, "log", "input.requested", "input.received") == [
        ("log", {"message": "before", "level": "info"}),
        ("input.requested", {"request_id": "q1", **asked}),
        ("input.received", {"request_id": "q1", "by": "key_a"}),
        ("input.requested", {"request_id": "q2", "prompt": "Go?", "choices": ["yes", "no"], **expires}),
        ("input.received", {"request_id": "q2", "by": "key_a"}),
    ]
    assert api.closed[0] == "q1"


async def test_an_answer_arrives_while_it_waits(pod: Any, api: Any) -> None:
    pod.crew("from crewyard_runtime import ask\ndef kickoff():\n    return ask('?')")
    await pod.start()
    await wait_until(lambda: told(api, "input.requested"))
    api.answers["q1"] = {"text": "x" * (1 << 20), "none": None}
    await pod.wait()
    # The output is larger than 32 KiB.
    assert (api.result["outcome"], list(api.artifacts)) == ("succeeded", ["output.json"])
    assert api.artifacts["output.json"][0].size > 1 << 20


async def test_questions_of_threads_and_coroutines_wait_at_the_same_time(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import asyncio
        from concurrent.futures import ThreadPoolExecutor
        from crewyard_runtime import ask, ask_async
        async def all_of():
            return await asyncio.gather(*(ask_async(f"a{n}") for n in range(3)))
        def kickoff():
            with ThreadPoolExecutor(3) as pool:
                return [*pool.map(ask, ["t0", "t1", "t2"]), *asyncio.run(all_of())]
        """
    )
    await pod.start()
    await wait_until(lambda: len(api.questions) == 3)
    # The last one first: each answer finds its own question.
    for identifier in ("q3", "q2", "q1"):
        api.answers[identifier] = api.questions[identifier]["prompt"]
    await wait_until(lambda: len(api.questions) == 6)
    for identifier in ("q4", "q5", "q6"):
        api.answers[identifier] = api.questions[identifier]["prompt"]
    await pod.wait()
    assert api.result["output"] == ["t0", "t1", "t2", "a0", "a1", "a2"]


@pytest.mark.parametrize(
    "crew",
    [
        "def kickoff():\n    return input('Name? ')",
        "def kickoff():\n    return input('\\x1b[1;33mName? \\x1b[0m')",
        "import asyncio\nasync def kickoff():\n    return await asyncio.to_thread(input, 'Name? ')",
    ],
)
async def test_input_asks_for_text(pod: Any, api: Any, crew: str) -> None:
    api.answers = {"q1": "Ada"}
    pod.crew(crew)
    await pod.run()
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", "Ada")
    assert (api.questions["q1"]["prompt"], api.questions["q1"]["schema"]) == ("Name?", {"type": "string"})


async def test_input_of_a_script_reads_the_input_first(pod: Any, api: Any) -> None:
    api.entrypoint, api.answers = "main.py", {"q1": "Ada"}
    pod.crew("import json\nprint(json.dumps([json.loads(input()), input('Name? ')]))")
    await pod.run()
    assert api.result["output"] == [{}, "Ada"]


@pytest.mark.parametrize("directory", ["lib/site-packages", "lib/dist-packages"])
async def test_input_of_crewai_shows_the_result_that_it_asks_about(
    pod: Any, api: Any, directory: str
) -> None:
    pod.crew(
        """
        class Finish:
            output = "Two tides a day."
        def prompt():
            return input()
        def handle_feedback(formatted_answer):
            return prompt()
        """,
        f"{directory}/crewai/__init__.py",
    )
    pod.crew(
        f"""
        import sys
        sys.path.append("{directory}")
        import crewai
        def kickoff():
            return crewai.handle_feedback(crewai.Finish())
        """
    )
    api.answers = {"q1": ""}
    await pod.run()
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", "")
    assert api.questions["q1"]["prompt"].startswith("Two tides a day.\n\nGive feedback")


async def test_a_prompt_that_typer_prints_itself_is_the_question(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import sys
        def confirm(prompt):
            sys.stdout.write(prompt[:-1])
            return input(prompt[-1:])
        """,
        "lib/site-packages/typer/_click/termui.py",
    )
    pod.crew(
        """
        import sys
        sys.path.append("lib/site-packages")
        from typer._click.termui import confirm
        print([confirm("Which tide? ")])
        print('["low"]')
        """
    )
    api.entrypoint, api.answers = "main.py", {"q1": "high"}
    await pod.run()
    assert api.questions["q1"]["prompt"] == "Which tide?"
    assert api.result["output"] == ["low"]
    assert [data["message"] for _, data in told(api, "log")] == ["Which tide?", "['high']", '["low"]']


async def test_waiting_does_not_count_against_the_timeout(pod: Any, api: Any) -> None:
    api.timeout = 4
    pod.crew(
        """
        from crewyard_runtime import ask
        open("imported", "w").close()
        def kickoff():
            return ask("?")
        """
    )
    await pod.start(**WARM)
    await wait_until((pod.app / "imported").exists)
    api.bound.set()
    await wait_until(lambda: "q1" in api.questions)
    await wait_until(lambda: api.granted_at + 5 < time.monotonic())
    api.answers["q1"] = "late"
    await pod.wait()
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", "late")
    assert api.result["duration_ms"] >= 5000


async def test_working_after_an_answer_counts_against_the_timeout(pod: Any, api: Any) -> None:
    api.timeout, api.answers = 1.0, {"q1": "now"}
    pod.crew(
        "import time\nfrom crewyard_runtime import ask\ndef kickoff():\n    ask('?')\n    time.sleep(100)"
    )
    await pod.run()
    assert (api.result["outcome"], api.result["reason"]) == ("failed", "DeadlineExceeded")


async def test_the_limit_of_waiting_ends_the_run_even_if_the_crew_catches_it(pod: Any, api: Any) -> None:
    api.ask_seconds = 0.5
    pod.crew(
        """
        from crewyard_runtime import ask
        def kickoff():
            try:
                ask("?")
            except BaseException:
                pass
            return "went on"
        """
    )
    await pod.run()
    assert (api.result["outcome"], api.result["reason"]) == ("failed", "InputTimeout")
    assert "0.5 s" in api.result["message"] and "askTimeout" in api.result["message"]


@pytest.mark.parametrize(
    ("caught", "outcome", "reason"), [(True, "succeeded", None), (False, "failed", "InputTimeout")]
)
async def test_the_timeout_of_a_question_is_an_exception(
    pod: Any, api: Any, caught: bool, outcome: str, reason: str | None
) -> None:
    pod.crew(
        f"""
        from crewyard_runtime import InputTimeout, ask
        def kickoff():
            try:
                return ask("?", timeout=0.3)
            except InputTimeout:
                if {caught}:
                    return "default"
                raise
        """
    )
    await pod.run()
    assert (api.result["outcome"], api.result["reason"]) == (outcome, reason)


async def test_an_api_that_is_away_while_it_waits_loses_nothing(pod: Any, api: Any) -> None:
    pod.crew("from crewyard_runtime import ask\ndef kickoff():\n    return ask('?')")
    await pod.start()
    await wait_until(lambda: told(api, "input.requested"))
    await api.stop()
    api.answers["q1"] = "kept"
    await api.start()
    await pod.wait()
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", "kept")
    assert len(told(api, "input.requested")) == 1


async def test_a_canceled_run_ends_while_it_waits(pod: Any, api: Any) -> None:
    pod.crew("from crewyard_runtime import ask\ndef kickoff():\n    return ask('?')")
    await pod.start()
    await wait_until(lambda: told(api, "input.requested"))
    pod.terminate()
    await pod.wait()
    assert api.result["outcome"] == "stopped"


async def test_a_refused_question_is_a_value_error(pod: Any, api: Any) -> None:
    api.refuse_question = "schema uses pattern"
    pod.crew("from crewyard_runtime import ask\ndef kickoff():\n    return ask('?')")
    await pod.run()
    assert (api.result["outcome"], api.result["reason"]) == ("failed", "CrewError")
    assert "ask: schema uses pattern" in api.result["message"]


async def test_a_question_too_long_for_the_channel_is_a_value_error(pod: Any, api: Any) -> None:
    pod.crew(
        "from crewyard_runtime import ask\ndef kickoff():\n    return ask('?', choices=['x' * 1000] * 600)"
    )
    await pod.run()
    assert (api.result["reason"], api.questions) == ("CrewError", {})
    assert "ask: schema and choices have" in api.result["message"]


async def test_a_question_nested_too_deeply_is_refused_and_loses_no_line(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import os
        def kickoff():
            schema = "[" * 900 + "]" * 900
            os.write(3, f'{{"ask": {{"number": 9, "prompt": "?", "schema": {schema}}}}}\\n'.encode())
            print("after", os.read(4, 65536).decode().strip())
        """
    )
    await pod.run()
    [line] = api.logs("info")
    assert line.startswith("after") and '"refused"' in line and "nested too deeply" in line
    assert api.result["outcome"] == "succeeded"


async def test_a_run_that_cannot_ask_sends_no_question(pod: Any, api: Any) -> None:
    api.ask_seconds = 0
    pod.crew(
        """
        import os, time
        def kickoff():
            os.write(3, b'{"ask": {"number": 1, "prompt": "?"}}\\n')
            time.sleep(0.5)
            return "went on"
        """
    )
    await pod.run()
    assert (api.result["outcome"], api.result["output"], api.questions) == ("succeeded", "went on", {})


async def test_more_open_questions_than_allowed_are_refused(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import asyncio
        from crewyard_runtime import ask_async
        async def kickoff():
            return await asyncio.gather(*(ask_async(str(n)) for n in range(17)))
        """
    )
    await pod.run()
    assert api.result["outcome"] == "failed" and "at most 16 open questions" in api.result["message"]


async def test_a_withdrawn_question_is_closed_and_the_crew_goes_on(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import asyncio
        from crewyard_runtime import ask_async
        async def kickoff():
            try:
                async with asyncio.timeout(0.3):
                    await ask_async("?")
            except TimeoutError:
                return "went on"
        """
    )
    await pod.run()
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", "went on")


async def test_a_question_withdrawn_during_a_call_is_closed_before_the_call_ends(pod: Any, api: Any) -> None:
    pod.crew(WITHDRAWS)
    await pod.start()
    await wait_until(lambda: api.polls)
    (pod.app / "withdraw").touch()
    await wait_until(lambda: api.closed)
    assert (api.closed, api.polls, api.idle_polls) == (["q1"], 1, 0)
    (pod.app / "end").touch()
    await pod.wait()
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", "went on")


async def test_a_question_withdrawn_while_the_api_is_away_does_not_end_the_run(pod: Any, api: Any) -> None:
    pod.crew(WITHDRAWS)
    await pod.start()
    await wait_until(lambda: told(api, "input.requested"))
    api.down = True
    (pod.app / "withdraw").touch()
    await wait_until(lambda: api.closed == ["q1"])
    (pod.app / "end").touch()
    await pod.wait()
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", "went on")


@pytest.mark.parametrize("case", ["no time", "old", "fork"])
async def test_a_run_that_cannot_ask_fails_and_says_why(pod: Any, api: Any, case: str) -> None:
    words = {"no time": "askTimeout", "old": "too old", "fork": "the process that the runner started"}
    crew = "from crewyard_runtime import ask\ndef kickoff():\n    return ask('Which way?')"
    if case == "no time":
        api.ask_seconds = 0
    elif case == "old":
        await api.stop()
        api.old = True
        await api.start()
    else:
        crew = """
        import multiprocessing
        from crewyard_runtime import InputRequired, ask
        def child(queue):
            try:
                ask("Which way?")
            except InputRequired as error:
                queue.put(str(error))
        def kickoff():
            context = multiprocessing.get_context("fork")
            queue = context.Queue()
            process = context.Process(target=child, args=(queue,))
            process.start()
            raise InputRequired(queue.get())
        """
    pod.crew(crew)
    await pod.run()
    assert (api.result["outcome"], api.result["reason"]) == ("failed", "InputRequired")
    assert "'Which way?'" in api.result["message"] and words[case] in api.result["message"]


async def test_secrets_are_masked_in_questions(pod: Any, api: Any) -> None:
    pod.environ["API_KEY"] = "sk-very-secret"
    api.answers = {"q1": 1}
    pod.crew(
        "import os\nfrom crewyard_runtime import ask\ndef kickoff():\n    return ask(os.environ['API_KEY'])"
    )
    await pod.run(SECRETS="API_KEY")
    assert api.questions["q1"]["prompt"] == "***"


def test_overlapping_questions_count_once() -> None:
    waiting = WaitingTime(100)
    waiting.begin("q1", 10)
    waiting.begin("q2", 12)
    waiting.end("q2", 15)
    waiting.end("q2", 15)
    assert waiting.total(16) == 6
    waiting.end("q1", 20)
    waiting.end("q1", 25)
    assert waiting.total(50) == 10
    waiting.begin("q3", 60)
    assert waiting.total(61) == 11


class NotedReplies(Questions):
    replies: list[tuple[int, bool]]

    def _reply(self, number: int, reply: dict[str, object]) -> None:
        self.replies.append((number, number in self._open))


def test_a_question_is_no_open_one_when_its_answer_arrives() -> None:
    # The crew may ask the next one at once.
    answered = HTTPResponse(200, b'{"state": "answered", "value": 1}')
    client: Any = SimpleNamespace(ask=lambda body: answered, close=lambda: None)
    questions = NotedReplies(lambda: client, EventQueue(), SecretMask(), -1, WaitingTime(60), 1000)
    questions.replies = []
    questions.handle({"number": 7, "prompt": "?"})
    for thread in threading.enumerate():
        if thread.name == "question q1":
            thread.join(60)
    assert questions.replies == [(7, False)]


@pytest.mark.parametrize("is_async", [False, True])
def test_many_interrupts_of_a_graph_are_asked_in_groups(
    monkeypatch: pytest.MonkeyPatch, is_async: bool
) -> None:
    groups: list[int] = [0]

    def send(prompt: str) -> Any:
        groups[-1] += 1
        return SimpleNamespace(result=lambda: finish(prompt))

    async def ask_async(prompt: str) -> object:
        groups[-1] += 1
        await asyncio.sleep(0)
        return finish(prompt)

    def finish(prompt: str) -> str:
        groups.extend([0] if groups[-1] else [])
        return f"{prompt}!"

    monkeypatch.setattr(ask_module, "send", send)
    monkeypatch.setattr(ask_module, "ask_async", ask_async)
    types = SimpleNamespace(Command=lambda resume: resume)
    monkeypatch.setitem(sys.modules, "langgraph.types", types)
    waiting = [SimpleNamespace(id=f"i{number}", value=str(number)) for number in range(20)]
    answers = (
        asyncio.run(langgraph_questions.answer_async(waiting))
        if is_async
        else langgraph_questions.answer(waiting)
    )
    assert answers == {f"i{number}": f"{number}!" for number in range(20)}
    assert groups == [16, 4, 0]


async def test_arguments_that_no_question_has_are_value_errors(pod: Any, api: Any) -> None:
    pod.crew(
        """
        from crewyard_runtime import ask
        WRONG = [
            *({"timeout": value} for value in ("3", True, float("nan"), 10**400, [1])),
            *({"schema": value} for value in (False, dict, "string")),
            *({"choices": value} for value in (5, "yes", b"yes", list)),
        ]
        def refusal(wrong):
            try:
                return ask("?", **wrong)
            except ValueError as error:
                return [*wrong, str(error)]
        def kickoff():
            return [refusal(wrong) for wrong in WRONG]
        """
    )
    await pod.run()
    assert api.result["outcome"] == "succeeded", api.result
    assert (len(api.result["output"]), api.questions) == (12, {})
    for name, message in api.result["output"]:
        assert message.startswith(f"ask: {name} must be ")


@pytest.mark.parametrize("wrong", [{"timeout": "3"}, {"schema": False}, {"choices": "yes"}])
def test_the_terminal_refuses_the_same_arguments(monkeypatch: pytest.MonkeyPatch, wrong: Any) -> None:
    monkeypatch.setattr("builtins.input", lambda _: "y")
    with pytest.raises(ValueError, match=r"^ask: .* must be "):
        ask("?", **wrong)
