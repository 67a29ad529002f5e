"""Answers to questions of runs, on the command line."""

import io
import json

import pytest

from crewyard.cli import questions
from crewyard.cli.context import CliContext
from crewyard.cli.main import call
from tests.unit.client.test_service import FaultyService, failure, service

__all__ = ["service"]

QUESTIONS = [
    {"request_id": "q1", "prompt": "Go?", "choices": ["yes", "no"], "created_at": "", "expires_at": ""},
    {"request_id": "q2", "prompt": "Who?", "schema": {"type": "string"}, "created_at": "", "expires_at": ""},
]


@pytest.mark.parametrize(
    ("text", "schema", "choices", "value"),
    [
        ("yes", None, ["yes", "no"], "yes"),
        ("2", None, [1, 2], 2),
        ("3", None, [1, 2], 3),
        ("42", {"type": "string"}, None, "42"),
        ("42", {"type": "integer"}, None, 42),
        ('{"go": true}', None, None, {"go": True}),
        ("go on", None, None, "go on"),
        ("", {"type": "string"}, None, ""),
        ("null", None, None, None),
    ],
)
def test_a_text_becomes_the_value_that_the_question_wants(text, schema, choices, value):
    assert questions.answer_value(text, schema, choices) == value


def run_with(service: FaultyService, *asked) -> None:
    shown = {"id": "run_a", "status": "running", "input_requests": list(asked)}
    service.responses["GET", "/v1/runs/run_a"] = [(200, {}, {"data": shown})]
    for item in QUESTIONS:
        path = f"/v1/runs/run_a/inputs/{item['request_id']}"
        done = {"request_id": item["request_id"], "received_at": "", "by": "key_a"}
        service.responses["POST", path] = [(200, {}, {"data": done})]


@pytest.mark.parametrize(
    ("asked", "arguments", "path"),
    [
        (QUESTIONS[:1], ["yes"], "/v1/runs/run_a/inputs/q1"),
        (QUESTIONS, ["q2", "Ada"], "/v1/runs/run_a/inputs/q2"),
        (QUESTIONS[1:], ["-1"], "/v1/runs/run_a/inputs/q2"),
        (QUESTIONS, ["q2", "-- Ada"], "/v1/runs/run_a/inputs/q2"),
    ],
)
def test_answer_goes_to_the_question(service, monkeypatch, capsys, asked, arguments, path):
    run_with(service, *asked)
    monkeypatch.setenv("CREWYARD_URL", service.url)
    monkeypatch.setenv("CREWYARD_API_KEY", "key")
    assert call(["runs", "answer", "run_a", *arguments]) == 0
    assert [(method, at) for method, at, _ in service.requests if method == "POST"] == [("POST", path)]
    assert "answered q" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "arguments", "message"),
    [
        (QUESTIONS, ["yes"], "q1, q2: name one"),
        (QUESTIONS, ["q3", "yes"], "no open question q3; it asks q1, q2"),
        ([], ["yes"], "it asks none now"),
        (QUESTIONS, ["q1", "a", "b"], "quote a value"),
    ],
)
def test_an_unclear_answer_names_the_open_questions(service, monkeypatch, capsys, asked, arguments, message):
    run_with(service, *asked)
    monkeypatch.setenv("CREWYARD_URL", service.url)
    monkeypatch.setenv("CREWYARD_API_KEY", "key")
    assert call(["runs", "answer", "run_a", *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert json.dumps(service.requests).count('"POST"') == 0


def test_choices_are_shown_as_they_are_answered(service, monkeypatch, capsys):
    run_with(service, {**QUESTIONS[0], "choices": ["yes", "\x1b[2Jno", True, None, {"a": 1}]})
    monkeypatch.setattr("sys.stdin", io.StringIO("true\n"))
    context, shown = CliContext(service.url, "key"), '[yes, \\x1b[2Jno, true, null, {"a": 1}]'
    questions.handle(context, "run_a", {"request_id": "q1"}, True)
    assert shown in capsys.readouterr().err
    assert json.loads(service.bodies[-1]) == {"value": True}
    (question,) = context.client.get_run("run_a")["input_requests"]
    questions.handle(context, "run_a", question, False)
    assert f"Go? {shown}" in capsys.readouterr().err
    context.output.details({}, [questions.column(question)])
    assert f"Go? {shown}" in capsys.readouterr().out


def test_an_answer_that_the_service_could_not_take_is_asked_for_again(service, monkeypatch):
    run_with(service, QUESTIONS[0])
    path, cut = "/v1/runs/run_a/inputs/q1", (204, {"Content-Length": "9"}, b"")
    service.responses["POST", path] = [failure(503), cut, *service.responses["POST", path]]
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\nno\nyes\n"))
    questions.handle(CliContext(service.url, "key"), "run_a", {"request_id": "q1"}, True)
    answers = [json.loads(body) for body in service.bodies if body]
    assert answers == [{"value": "yes"}, {"value": "no"}, {"value": "yes"}]
