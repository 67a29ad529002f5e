"""Pure parts of the API, with tables and properties."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import errors
from api.http import casing, negotiation, query, request_body, validation
from api.http.json_encoding import encode
from api.routing import middleware
from api.store import errors as store
from api.streaming import sse
from api.v1.env import view as env
from api.v1.env.schema import NAME as VARIABLE_NAME
from api.v1.fields import NAME_PATTERN
from api.v1.projects.schema import SPEC as PROJECT_SPEC
from crds.kinds import DEPLOYMENT, PROJECT, RUN
from crds.schema import openapi
from kube import errors as kube
from tests.unit.api.conftest import NOW

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.from_regex(r"\A[a-z]{1,5}([A-Z][a-z]{1,5}){0,3}\Z"))
def test_snake_case_round_trip(name):
    assert casing.camel(casing.snake(name)) == name


def schema_values(schema):
    """Return a strategy for values of a structural schema."""
    if "properties" in schema:
        return st.fixed_dictionaries(
            {}, optional={k: schema_values(v) for k, v in schema["properties"].items()}
        )
    if schema.get("type") == "array":
        return st.lists(schema_values(schema.get("items") or {}), max_size=2)
    if schema.get("type") == "object":
        return st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=2)
    return st.text(max_size=5)


@given(schema_values(PROJECT_SPEC))
def test_spec_round_trip(spec):
    assert casing.to_camel(PROJECT_SPEC, casing.to_snake(PROJECT_SPEC, spec)) == spec


@given(JSON)
def test_json_round_trip(value):
    assert request_body.parse(encode(value)) == value


@given(JSON, st.integers(1, 10**9))
def test_sse_data_stays_on_one_line(value, identifier):
    frame = sse.frame("log", {"message": value}, identifier)
    first, second, third, *rest = frame.split(b"\n")
    assert (first, second, rest) == (f"id: {identifier}".encode(), b"event: log", [b"", b""])
    assert third.startswith(b"data: ") and b"\r" not in frame
    assert json.loads(third[6:]) == {"message": value}


def test_lone_surrogate_is_encoded():
    assert json.loads(encode({"message": "\ud800"})) == {"message": "\ud800"}


@pytest.mark.parametrize(
    ("accept", "offered", "chosen"),
    [
        (None, ["a/b", "c/d"], "a/b"),
        ("", ["a/b"], "a/b"),
        ("*/*", ["a/b", "c/d"], "a/b"),
        ("c/d", ["a/b", "c/d"], "c/d"),
        ("c/*", ["a/b", "c/d"], "c/d"),
        ("a/b;q=0.1, c/d;q=0.9", ["a/b", "c/d"], "c/d"),
        ("a/b;q=0, */*", ["a/b", "c/d"], "c/d"),
        ("c/d, */*", ["a/b", "c/d"], "c/d"),
        ("c/*, */*", ["a/b", "c/d"], "c/d"),
        ("c/d;q=0.9, */*", ["a/b", "c/d"], "a/b"),
        ("a/b, c/d", ["a/b", "c/d"], "a/b"),
        ("C/D ; charset=utf-8", ["a/b", "c/d"], "c/d"),
        ("x/y", ["*/*"], "*/*"),
        ("x/y", ["a/b"], None),
        ("application/json", ["text/plain", "text/event-stream"], "text/plain"),
        (
            "application/json, text/event-stream;q=0.5",
            ["text/plain", "text/event-stream"],
            "text/event-stream",
        ),
        ("application/json;q=0", ["text/plain"], None),
        ("text/html", ["text/plain"], None),
        ("a/b;q=0", ["a/b"], None),
        ("a/b;q=high", ["a/b"], None),
        ("a/b;q=nan", ["a/b"], None),
        ("a/b;q=nan, c/d;q=0.1", ["a/b", "c/d"], "c/d"),
        ("a/b;q=inf", ["a/b"], "a/b"),
    ],
)
def test_negotiated_media_type(accept, offered, chosen):
    if chosen is None:
        with pytest.raises(errors.HttpApiError) as refused:
            negotiation.choose(accept, offered)
        assert refused.value.status == 406
    else:
        assert negotiation.choose(accept, offered) == chosen


CAUSES = {"causes": [{"field": "spec.source.git.secretRef", "message": 'Invalid value: "object": set one'}]}
ITEM_CAUSES = {"causes": [{"field": "spec.schedules[0].timeZone", "message": "set one"}]}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ('Invalid value: "object": set one', "set one"),
        (
            'Invalid value: "https://user:hunter2@host/x.git": url must not name a user',
            "url must not name a user",
        ),
        (r'Invalid value: "a\": hunter2": too long', "too long"),
        ("Invalid value: 12: must be at most 5", "must be at most 5"),
        ('Unsupported value: "hunter2": supported values: "a", "b"', 'supported values: "a", "b"'),
        ('Duplicate value: "hunter2"', "duplicate value"),
        (
            'project "x" is invalid: spec.url: Invalid value: "hunter2": no',
            'project "x" is invalid: spec.url: no',
        ),
        ('Duplicate value: "hunter2" (no)', "duplicate value (no)"),
        ("Duplicate value: 12", "duplicate value"),
        ('Duplicate value: {"name":"hunter2"}', "duplicate value"),
        (r'Duplicate value: {"name":"a\"}: hunter2","more":[{"b":"c d"}]}', "duplicate value"),
        ('Duplicate value: map[string]interface {}{"name":"hunter2 }"}', "duplicate value"),
        ("Duplicate value: map[name:hunter2 in:map[value:a ]: b]]", "duplicate value"),
        (
            'Invalid value: {"a":{"b":"hunter2: no"}}: must have at least 2 fields',
            "must have at least 2 fields",
        ),
        ('Invalid value: ["a b","hunter2"]: must be shorter', "must be shorter"),
        ("Invalid value: null: must be an object", "must be an object"),
        # Values without their end; a search that is not linear takes minutes for these.
        ("Invalid value: [hunter2 " * 30_000, "invalid value"),
        ('Invalid value: {"a":{ ' * 30_000, "invalid value"),
        ('Invalid value: "hunter2\\', "invalid value"),
    ],
)
def test_apiserver_refusals_repeat_no_value(message, expected):
    for causes in ([{"message": message}], []):
        error = errors.from_kube_error(kube.Invalid(422, "Invalid", message, {"causes": causes}))
        assert error is not None and error.message == expected


def rule_messages(schema):
    """Yield the messages of all rules below a schema."""
    if isinstance(schema, dict):
        yield from (rule["message"] for rule in schema.get("x-kubernetes-validations", ()))
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from rule_messages(inner)


@pytest.mark.parametrize("kind", [PROJECT, DEPLOYMENT, RUN])
def test_messages_of_rules_come_out_whole(kind):
    messages = list(rule_messages(openapi(kind)))
    assert messages
    for message in messages:
        # The apiserver leaves out the value of an object.
        for text in (message, f'"hunter2": {message}', f'{{"a":["hunter2"]}}: {message}'):
            causes = {"causes": [{"message": f"Invalid value: {text}"}]}
            error = errors.from_kube_error(kube.Invalid(422, "Invalid", "no", causes))
            assert error is not None and error.message == message


@pytest.mark.parametrize(
    ("error", "status", "field"),
    [
        (kube.Invalid(422, "Invalid", "no", CAUSES), 400, "source.git.secret_ref"),
        (kube.Invalid(422, "Invalid", "no", ITEM_CAUSES), 400, "schedules.0.time_zone"),
        (kube.Invalid(422, "Invalid", "no", {"causes": [{"field": "<nil>"}]}), 400, None),
        (kube.Invalid(400, "BadRequest", "no"), 400, None),
        (kube.from_status(413, {"reason": "RequestEntityTooLarge"}), 413, None),
        (kube.from_status(500, {"message": "etcdserver: request is too large"}), 413, None),
        (kube.AlreadyExists(409, "AlreadyExists", "no"), 409, None),
        (kube.KubeConflict(409, "Conflict", "no"), 409, None),
        (kube.KubeNotFound(404, "NotFound", "no"), 404, None),
        (kube.KubeUnavailable(0, "Unreachable", "10.0.0.1 refused"), 503, None),
        (kube.AdmissionDenied(400, "400", 'admission webhook "x" denied the request: no'), 403, None),
        (kube.Expired(410, "Expired", "no"), 503, None),
        (kube.NamespaceTerminating(403, "Forbidden", "serviceaccount x cannot"), 409, None),
        (kube.KubeForbidden(403, "Forbidden", "serviceaccount x cannot"), 500, None),
        (kube.KubeError(418, "Teapot", "no"), 500, None),
    ],
)
def test_apiserver_errors_as_api_errors(error, status, field):
    api_error = middleware.from_exception(error, "req_1")
    assert (api_error.status, api_error.details.get("field")) == (status, field)
    assert ("Retry-After" in api_error.headers) is (status == 503)
    assert "serviceaccount" not in api_error.message and "10.0.0.1" not in api_error.message
    if field:
        assert api_error.message == "set one"


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (store.StoreRefused, 400),
        (store.Mismatch, 400),
        (store.Missing, 404),
        (store.StoreConflict, 409),
        (store.TooLarge, 413),
    ],
)
def test_errors_of_the_store_name_the_field(kind, status):
    for field, details in (("size", {"field": "size"}), (None, {})):
        api_error = middleware.from_exception(kind("no", field), "req_1")
        assert (api_error.status, api_error.message, api_error.details) == (status, "no", details)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 416, 429, 500, 503])
def test_every_error_status_has_code_and_same_shape(status):
    shape = errors.HttpApiError(status, "no").body()["error"]
    assert set(shape) == {"code", "message", "details"} and shape["code"].islower()


@pytest.mark.parametrize(
    ("schema", "value", "keyword"),
    [
        ({"maxLength": 3, "pattern": "^a*$", "format": "date"}, "bbbb", "maxLength"),
        ({"pattern": "^a*$"}, "b" * 101, "maxLength"),
        ({"maxItems": 1, "uniqueItems": True, "items": {"type": "string"}}, [1, 1], "maxItems"),
        (
            {
                "maxProperties": 1,
                "properties": {"a": {"type": "string"}},
                "propertyNames": {"maxLength": 1},
                "additionalProperties": {"type": "string"},
            },
            {"a": 1, "bb": 1},
            "maxProperties",
        ),
    ],
)
def test_what_is_above_a_limit_is_not_checked_further(schema, value, keyword):
    """A body of 2 MiB has a hundred thousand entries, and some patterns take the square of a length."""
    assert [error.validator for error in validation.validator(schema).iter_errors(value)] == [keyword]


def test_an_error_is_reported_without_reading_all_of_them():
    unread = iter([next(validation.validator({"type": "string"}).iter_errors(1))] * 5000)
    with pytest.raises(errors.HttpApiError, match="the body must be a string"):
        validation.check(SimpleNamespace(iter_errors=lambda body: unread), 1)
    assert len(list(unread)) == 5000 - validation.MAX_READ_ERRORS


def test_unique_items():
    checker = validation.validator({"uniqueItems": True})
    assert checker.is_valid([1, "1", True, {"a": [1]}, {"a": [2]}, None])
    assert not checker.is_valid([{"a": 1, "b": 2}, {"b": 2, "a": 1}])


@pytest.mark.parametrize("good", ["A", "_a", "TIDE_2", "PATHS", "HOMER", "PYTHO"])
@pytest.mark.parametrize(
    "bad", ["", "1", "a-b", "a.b", "PATH", "HOME", "PYTHONPATH", "CREWYARD_X", "Ü", "A\n"]
)
def test_variable_names(good, bad):
    checker = validation.validator(VARIABLE_NAME)
    assert checker.is_valid(good) and not checker.is_valid(bad)


@given(st.text(max_size=12))
def test_pattern_matches_whole_text(text):
    checker = validation.validator({"pattern": NAME_PATTERN})
    plain = bool(text) and all(c in "abcdefghijklmnopqrstuvwxyz0123456789-" for c in text)
    assert checker.is_valid(text) is (plain and text[0] != "-" and text[-1] != "-")


@given(st.integers())
def test_integer_parameter(number):
    page = query.Parameter("page", {"type": "integer", "minimum": 1, "maximum": 1000}, default=1)
    try:
        assert query.parse([page], [("page", str(number))]) == {"page": number}
        assert 1 <= number <= 1000
    except errors.HttpApiError as error:
        assert error.details == {"field": "page"} and not 1 <= number <= 1000


@given(
    st.dictionaries(st.sampled_from("ABCD"), st.text(max_size=3)),
    st.dictionaries(st.sampled_from("ABCD"), st.text(max_size=3)),
)
def test_replace_patch_sets_exactly_the_new_variables(before, after):
    secret = env.new_secret("crew", "uid", before, NOW)
    secret["metadata"]["resourceVersion"] = "7"
    patch = env.replace_patch(secret, "crew", after, NOW)
    merged = {name: value for name, value in {**secret["data"], **patch["data"]}.items() if value is not None}
    assert merged == env.new_secret("crew", "uid", after, NOW)["data"]
    assert patch["metadata"]["resourceVersion"] == "7"
    shown = env.items({"metadata": {**secret["metadata"], **patch["metadata"]}, "data": merged})
    assert [item["name"] for item in shown] == sorted(after)
