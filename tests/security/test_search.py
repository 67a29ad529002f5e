"""The search itself: what it would find, and what it takes for nothing."""

import base64
import gzip
import json
from urllib.parse import quote

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.security.canaries import Canaries, CanaryMatch


@pytest.mark.parametrize(
    "hide",
    [
        lambda text: text.encode(),
        lambda text: json.dumps({"a": [text]}).encode(),
        lambda text: json.dumps(json.dumps({"a": text})).encode(),
        lambda text: quote(text, safe="").encode(),
        lambda text: repr(text).encode(),
        lambda text: base64.b64encode(f"user:{text}".encode()),
        lambda text: base64.urlsafe_b64encode(f"another:{text}".encode()),
        lambda text: base64.b64encode(json.dumps({"auth": text}).encode()),
        lambda text: gzip.compress(f"a line\n{text}\n".encode()),
        lambda text: gzip.compress(text.encode() * 100)[:-9],
        lambda text: zstandard.compress(f"a line\n{text}\n".encode()),
    ],
)
def test_search_finds_encoded_secret(hide):
    canaries = Canaries()
    secret = canaries.draw("word")
    (sight,) = {(one.secret, one.place) for one in canaries.sights("here", hide(secret))}
    assert sight[0] in ("word", "mark") and sight[1] == "here"


@given(before=st.binary(max_size=8), after=st.binary(max_size=8))
def test_search_finds_secret_inside_base64(before, after):
    canaries = Canaries()
    canaries.know("key", "crw_0123456789abcdef?>?>")
    hidden = base64.b64encode(before + b"crw_0123456789abcdef?>?>" + after)
    assert CanaryMatch("key", "base64", "x") in canaries.sights("x", hidden)


@given(st.binary(max_size=400))
def test_search_has_no_false_positive(content):
    assert Canaries().sights("x", content) == set()
