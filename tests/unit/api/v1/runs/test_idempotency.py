"""The Idempotency-Key header: what is accepted, and which requests are the same."""

import hashlib

import pytest

from api.errors import HttpApiError
from api.store.index.idempotency import Idempotency
from api.v1.idempotency import parse_header


def test_a_request_without_the_header_has_no_key() -> None:
    assert parse_header(None, "owner", "/v1/runs", {}) is None


def test_a_key_is_scoped_to_owner_and_path() -> None:
    key = parse_header("once", "owner", "/v1/runs", {"b": {"d": 1, "c": "é"}, "a": [1, 2]})
    body = b'{"a":[1,2],"b":{"c":"\\u00e9","d":1}}'
    assert key == Idempotency("owner", "/v1/runs once", hashlib.sha256(body).hexdigest())
    assert key == parse_header("once", "owner", "/v1/runs", {"a": [1, 2], "b": {"c": "é", "d": 1}})
    assert key != parse_header("once", "owner", "/v1/runs", {"a": [2, 1], "b": {"c": "é", "d": 1}})


@pytest.mark.parametrize("header", ["!", "~", "x" * 255])
def test_visible_characters_are_accepted(header: str) -> None:
    key = parse_header(header, "owner", "/v1/runs", {})
    assert key is not None and key.key == f"/v1/runs {header}"


@pytest.mark.parametrize("header", ["", " ", "a b", "x" * 256, "é", "\x7f", "a\n", "\t"])
def test_other_headers_are_refused(header: str) -> None:
    with pytest.raises(HttpApiError) as raised:
        parse_header(header, "owner", "/v1/runs", {})
    assert raised.value.status == 400
    assert raised.value.details == {"field": "Idempotency-Key"}
    assert raised.value.message == "Idempotency-Key must be 1 to 255 visible ASCII characters without spaces"
