"""The tables [run.inputs] and smoke: the fields of a run's input, and the run before activation."""

import tomllib
from collections.abc import Mapping

import pytest

from plan.config.run_inputs import read_inputs
from plan.config.smoke import read_smoke
from plan.config.toml_tables import TomlTable
from plan.errors import PlanError

TYPES = "Types: string, integer, number, boolean, array, object."


def inputs(text: str) -> Mapping[str, object] | None:
    return read_inputs(TomlTable("crew.toml", "run", tomllib.loads(text).get("run", {}), text))


def smoke(text: str) -> Mapping[str, object] | None:
    table = TomlTable("crew.toml", "deployment", tomllib.loads(text)["deployment"], text)
    return read_smoke(table, lambda found: found.text_at("timeout", "1h"))


@pytest.mark.parametrize(
    ("fields", "properties", "required"),
    [
        ("", {}, []),
        ("a = 'string'\nb = 'object'", {"a": {"type": "string"}, "b": {"type": "object"}}, ["a", "b"]),
        ("a = {}", {"a": {}}, ["a"]),
        ("a = {type = 'number', required = false}", {"a": {"type": "number"}}, []),
        ("a = {default = 0.5}", {"a": {"default": 0.5}}, []),
        ("a = {default = 1, required = true}", {"a": {"default": 1}}, ["a"]),
        (
            "a = {description = 'D.', enum = [1], type = 'integer'}",
            {"a": {"type": "integer", "description": "D.", "enum": [1]}},
            ["a"],
        ),
        (f"é-2 = 'array'\n{'a' * 64} = 'boolean'".replace("é-2", "'é-2'"),
         {"é-2": {"type": "array"}, "a" * 64: {"type": "boolean"}}, ["é-2", "a" * 64]),
    ],
)  # fmt: skip
def test_fields_become_a_json_schema(fields: str, properties: dict[str, object], required: list[str]) -> None:
    schema = {"type": "object", "properties": properties, **({"required": required} if required else {})}
    assert inputs(f"[run.inputs]\n{fields}\n") == schema


def test_run_without_inputs_has_no_schema() -> None:
    assert inputs("[run]\n") is None


LONG = "x" * 200


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[run]\ninputs = 3", "line 2: run.inputs must be a table",
         "Write [run.inputs] with its keys below."),
        ("[run.inputs]\na = 'text'", "line 2: run.inputs.a must be a type or a table, not 'text'", TYPES),
        ("[run.inputs]\na = 3", "line 2: run.inputs.a must be a type or a table, not 3", TYPES),
        (f"[run.inputs]\na = '{LONG}'",
         f"line 2: run.inputs.a must be a type or a table, not '{LONG[:99]}", TYPES),
        ("[run.inputs.a]\ntype = 'text'", "line 2: run.inputs.a.type is 'text'", TYPES),
        (f"[run.inputs.a]\ntype = '{LONG}'", f"line 2: run.inputs.a.type is '{LONG[:99]}", TYPES),
        ("[run.inputs.a]\nkind = 'x'", "line 2: run.inputs.a.kind is unknown",
         "Known keys: type, description, default, enum, required."),
        ("[run.inputs.a]\ndescription = 1", "line 2: run.inputs.a.description must be a non-empty string",
         'For example: description = "What the report is about.".'),
        ("[run.inputs.a]\nenum = 3", "line 2: run.inputs.a.enum must be a list with at least one value",
         'For example: enum = ["a", "b"].'),
        ("[run.inputs.a]\nenum = []", "line 2: run.inputs.a.enum must be a list with at least one value",
         'For example: enum = ["a", "b"].'),
        ("[run.inputs.a]\nrequired = 1", "line 2: run.inputs.a.required must be true or false",
         "For example: required = false."),
        ("[run.inputs]\nb = 'string'\na = {default = nan}",
         "line 2: run.inputs.b or a field after it has a date, nan or inf, which JSON does not have",
         "Use text or numbers."),
        ("[run.inputs.a]\nenum = [2026-11-23]",
         "line 1: run.inputs.a or a field after it has a date, nan or inf, which JSON does not have",
         "Use text or numbers."),
        (f"[run.inputs.a]\ndescription = '{'x' * 953}'",
         "line 1: run.inputs.a and the other fields have 1025 bytes as JSON Schema",
         "Use at most 1024: fewer or shorter descriptions."),
        ("[run.inputs]\n'a b' = 'string'", "line 2: run.inputs.a b is not a valid name",
         "Use letters, digits, _ and -."),
        (f"[run.inputs]\n{'a' * 65} = 'string'", f"line 2: run.inputs.{'a' * 65} is not a valid name",
         "Use letters, digits, _ and -."),
    ],
)  # fmt: skip
def test_field_that_is_no_json_schema_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(PlanError) as raised:
        inputs(text)
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "ConfigInvalid",
        f"crew.toml {message}",
        hint,
    )


def test_schema_may_have_1024_bytes() -> None:
    assert inputs(f"[run.inputs.a]\ndescription = '{'x' * 952}'") is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("smoke = {}", {}),
        ("smoke = {timeout = '2m'}", {"timeout": "2m"}),
        ("smoke = {input = {}}", {"input": {}}),
        (f"smoke = {{input = {{a = '{'x' * 1015}'}}}}", {"input": {"a": "x" * 1015}}),
    ],
)
def test_smoke_run_has_what_is_set(text: str, expected: dict[str, object] | None) -> None:
    assert smoke(f"[deployment]\n{text}\n") == expected


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("smoke = true", "line 2: deployment.smoke must be a table",
         "Write [deployment.smoke] with its keys below."),
        ("[deployment.smoke]\ninputs = {}", "line 3: deployment.smoke.inputs is unknown",
         "Did you mean 'input'?"),
        ("[deployment.smoke]\ninput = 3", "line 3: deployment.smoke.input must be a table",
         "Write [deployment.smoke.input] with its keys below."),
        ("[deployment.smoke]\ninput = {a = 2026-11-23}",
         "line 3: deployment.smoke.input has a date, nan or inf, which JSON does not have",
         'For example: smoke = { input = { topic = "tides" }, timeout = "2m" }.'),
        ("[deployment.smoke]\ninput = {a = [nan]}",
         "line 3: deployment.smoke.input has a date, nan or inf, which JSON does not have",
         'For example: smoke = { input = { topic = "tides" }, timeout = "2m" }.'),
        (f"[deployment.smoke]\ninput = {{a = '{'x' * 1016}'}}",
         "line 3: deployment.smoke.input has 1025 bytes as JSON",
         "Use at most 1024; larger values can be files of the repository."),
    ],
)  # fmt: skip
def test_smoke_run_that_no_input_could_be_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(PlanError) as raised:
        smoke(f"[deployment]\n{text}\n")
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "ConfigInvalid",
        f"crew.toml {message}",
        hint,
    )
