"""Tests of presigned URLs against the AWS documentation and a real S3 server."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from yarl import URL

from api.config import ApiConfigError, parse
from api.store.blobs.presign import MAX_EXPIRY_SECONDS, UrlSigner, make_signer
from tests.unit.api.store.bucket import CREDENTIALS, S3Server

BODY = b"an archive" * 100
SHA = hashlib.sha256(BODY).hexdigest()


def test_url_matches_aws_documentation() -> None:
    # Source: Amazon S3 API reference, "Authenticating Requests: Using Query Parameters".
    one = UrlSigner(
        "https://examplebucket.s3.amazonaws.com", "", "", "us-east-1",
        "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    )  # fmt: skip
    url = one.get("test.txt", {}, datetime(2013, 5, 24, tzinfo=UTC), 86400)
    assert url.endswith("=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")


@pytest.fixture
def signing(bucket: S3Server) -> UrlSigner:
    url = f"s3://{bucket.new().name}/some/prefix"
    return make_signer(bucket.environment, url, bucket.environment["AWS_ENDPOINT_URL"])


async def call(method: str, url: str, data: bytes | None = None, **headers: str) -> tuple[int, Any, bytes]:
    # The length is that of the sent bytes, not of the announced ones.
    sent = {name.replace("_", "-"): value for name, value in headers.items() if name != "Content-Length"}
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, URL(url, encoded=True), data=data, headers=sent) as answer,
    ):
        return answer.status, answer.headers, await answer.read()


async def test_put_and_get_with_signed_headers(
    signing: UrlSigner,
) -> None:
    now = datetime.now(UTC)
    allowed = signing.put("crews/a b+ü%2F", len(BODY), SHA, now, 60)
    assert allowed.headers["Content-Length"] == str(len(BODY))
    assert (await call("PUT", allowed.url, BODY, **allowed.headers))[0] == 200
    answer = {
        "Content-Type": "text/x; a=b",
        "Content-Disposition": "attachment; filename*=UTF-8''a%20b%C3%BC",
    }
    url = signing.get("crews/a b+ü%2F", answer, now, 60)
    status, headers, body = await call("GET", url)
    assert (status, body) == (200, BODY)
    assert answer.items() <= dict(headers).items()
    status, _, body = await call("GET", url, Range="bytes=3-5")
    assert (status, body) == (206, BODY[3:6])


async def test_changed_request_is_refused(signing: UrlSigner) -> None:
    now = datetime.now(UTC)
    allowed = signing.put("crews/a", len(BODY), SHA, now, 60)
    other = bytes([BODY[0] ^ 1]) + BODY[1:]
    late = signing.put("crews/a", len(BODY), SHA, now - timedelta(hours=1), 60)
    unknown = signing.put("crews/a", len(BODY), None, now, 60)
    for url, headers, body in (
        (allowed.url, allowed.headers, other),
        (allowed.url, allowed.headers, BODY[:-1]),
        (allowed.url, allowed.headers, BODY + b"x"),
        (allowed.url.replace("crews/a", "crews/b"), allowed.headers, BODY),
        (allowed.url, {**allowed.headers, "Content-Type": "text/html"}, BODY),
        (late.url, late.headers, BODY),
        (unknown.url, unknown.headers, BODY + b"x"),
    ):
        status, _, refusal = await call("PUT", url, body, **headers)
        assert 400 <= status < 500, refusal
        assert (await call("GET", signing.get("crews/a", {}, now, 60)))[0] == 404
    assert (await call("GET", allowed.url))[0] == 403


@pytest.mark.parametrize(
    ("url", "endpoint", "environ", "words"),
    [
        ("s3://b", "ftp://x", CREDENTIALS, "must be"),
        (None, "https://x", CREDENTIALS, "CREWYARD_BLOBS_URL"),
        ("gs://b", "https://x", CREDENTIALS, "CREWYARD_BLOBS_URL"),
        ("s3://b", "https://x", {}, "AWS_ACCESS_KEY_ID"),
    ],
)
def test_missing_signer_settings(url: str | None, endpoint: str, environ: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make_signer(environ, url, endpoint)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"CREWYARD_BLOBS_DIRECT": "true"}, "CREWYARD_BLOBS_DIRECT: needs CREWYARD_BLOBS_PUBLIC_URL"),
        ({"CREWYARD_BLOBS_DIRECT": "yes"}, "CREWYARD_BLOBS_DIRECT: must be true or false"),
        ({"CREWYARD_BLOBS_PUBLIC_URL": "https://x"}, "CREWYARD_BLOBS_PUBLIC_URL: needs CREWYARD_BLOBS_URL"),
    ],
)
def test_invalid_signer_settings(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ApiConfigError, match=words):
        parse({"CREWYARD_TOKEN_KEY": "k" * 32, **settings})


@pytest.mark.parametrize(
    ("endpoint", "plain"),
    [
        ("https://S3.Example.com:443", "https://s3.example.com"),
        ("http://s3.example.com:80/X/", "http://s3.example.com/X"),
        ("https://s3.example.com:80", "https://s3.example.com:80"),
        ("http://[::1]:9000", "http://[::1]:9000"),
    ],
)
def test_signed_host_is_the_header_that_clients_send(endpoint: str, plain: str) -> None:
    now = datetime.now(UTC)
    found, expected = (
        make_signer(CREDENTIALS, "s3://b", each).get("a", {}, now, 60) for each in (endpoint, plain)
    )
    assert found == expected and found.startswith(f"{plain}/b/a?")


def test_an_upload_url_lives_as_long_as_a_signature_may() -> None:
    month = {"CREWYARD_TOKEN_KEY": "k" * 32, "CREWYARD_UPLOAD_TTL": "2592000"}
    bucket = {"CREWYARD_BLOBS_URL": "s3://b", "CREWYARD_BLOBS_PUBLIC_URL": "https://x", **CREDENTIALS}
    assert (parse(month).upload_ttl, parse(month | bucket).upload_ttl) == (2592000, MAX_EXPIRY_SECONDS)


def test_repr_shows_no_secret() -> None:
    made = make_signer({**CREDENTIALS, "AWS_SESSION_TOKEN": "of-a-session"}, "s3://b", "https://x")
    assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in repr(made) and "of-a-session" not in repr(made)
