"""Addresses at which a client reaches one object of a bucket itself: S3's pre-signed requests (version 4).

Pure. Made by `api.config`, used by the routes of uploads and artifacts. Written here because the
object-store library signs neither headers nor the answer's: the length and the hash of an upload would be
anybody's, and a crew's file would be shown by browsers instead of stored.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

_ALGORITHM = "AWS4-HMAC-SHA256"
LONGEST = 7 * 24 * 3600
"""Seconds that S3 lets an address hold."""


@dataclass(frozen=True)
class Signed:
    """A request that its address permits, with the headers that belong to it."""

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Signer:
    """Signs for the objects below `prefix` of a bucket; `endpoint` is how clients reach the store."""

    endpoint: str
    bucket: str
    prefix: str
    region: str
    access_key: str
    secret_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)
    files: bool = False
    """Whether artifacts are read at such addresses too, and not uploads alone written."""

    def put(self, key: str, size: int, sha256: str | None, now: datetime, seconds: int) -> Signed:
        """Storing exactly `size` bytes, with this SHA-256 (hex) where it is known. The store checks both."""
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        if sha256 is not None:
            headers["x-amz-checksum-sha256"] = base64.b64encode(bytes.fromhex(sha256)).decode()
        return Signed(self._url("PUT", key, headers, {}, now, seconds), headers)

    def get(self, key: str, answer: Mapping[str, str], now: datetime, seconds: int) -> str:
        """Reading the object; `answer` are headers of the store's answer (Content-Type and the like)."""
        query = {f"response-{name.lower()}": value for name, value in answer.items()}
        return self._url("GET", key, {}, query, now, seconds)

    def _url(
        self,
        method: str,
        key: str,
        headers: Mapping[str, str],
        query: Mapping[str, str],
        now: datetime,
        seconds: int,
    ) -> str:
        parts = urlsplit(self.endpoint)
        whole = "/".join(part for part in (self.bucket, self.prefix, key) if part)
        path = f"{parts.path.rstrip('/')}/{quote(whole, safe='/-_.~')}"
        moment = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
        scope = f"{moment[:8]}/{self.region}/s3/aws4_request"
        signed = {"host": parts.netloc, **{name.lower(): value for name, value in headers.items()}}
        names = ";".join(sorted(signed))
        told = {
            **query,
            "X-Amz-Algorithm": _ALGORITHM,
            "X-Amz-Credential": f"{self.access_key}/{scope}",
            "X-Amz-Date": moment,
            "X-Amz-Expires": str(max(1, min(seconds, LONGEST))),
            "X-Amz-SignedHeaders": names,
            **({"X-Amz-Security-Token": self.session_token} if self.session_token else {}),
        }
        canonical = "&".join(
            f"{quote(name, safe='-_.~')}={quote(told[name], safe='-_.~')}" for name in sorted(told)
        )
        lines = [
            method,
            path,
            canonical,
            *(f"{name}:{signed[name].strip()}" for name in sorted(signed)),
            "",
            names,
        ]
        request = "\n".join([*lines, "UNSIGNED-PAYLOAD"])
        digest = hashlib.sha256(request.encode()).hexdigest()
        signature = self._sign(scope, "\n".join([_ALGORITHM, moment, scope, digest]))
        return f"{parts.scheme}://{parts.netloc}{path}?{canonical}&X-Amz-Signature={signature}"

    def _sign(self, scope: str, text: str) -> str:
        key = f"AWS4{self.secret_key}".encode()
        for part in (*scope.split("/"), text):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return key.hex()


def signer(environ: Mapping[str, str], bucket_url: str | None, endpoint: str) -> Signer:
    """The signer of a bucket. Raises ValueError where it has no address or no key to sign with."""
    parts, place = urlsplit(endpoint), urlsplit(bucket_url or "")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be the http:// or https:// address of the S3 endpoint as clients reach it")
    if place.scheme != "s3":
        raise ValueError("needs CREWYARD_BLOBS_URL=s3://bucket/prefix: nothing else can sign addresses")
    access, secret = environ.get("AWS_ACCESS_KEY_ID", ""), environ.get("AWS_SECRET_ACCESS_KEY", "")
    if not access or not secret:
        raise ValueError("needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to sign addresses with")
    return Signer(
        endpoint=endpoint.rstrip("/"),
        bucket=place.netloc,
        prefix=place.path.strip("/"),
        region=environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1",
        access_key=access,
        secret_key=secret,
        session_token=environ.get("AWS_SESSION_TOKEN", ""),
    )


def parse_signer(environ: Mapping[str, str], wrong: list[str]) -> Signer | None:
    """The signer that the environment asks for, if it does; adds to `wrong` what is wrong."""
    endpoint, files = environ.get("CREWYARD_BLOBS_PUBLIC_URL", ""), environ.get("CREWYARD_BLOBS_DIRECT", "")
    if files.lower() not in ("", "true", "false"):
        wrong.append("CREWYARD_BLOBS_DIRECT: must be true or false")
    if not endpoint:
        if files.lower() == "true":
            wrong.append("CREWYARD_BLOBS_DIRECT: needs CREWYARD_BLOBS_PUBLIC_URL, the bucket's address")
        return None
    try:
        made = signer(environ, environ.get("CREWYARD_BLOBS_URL", "").rstrip("/"), endpoint)
    except ValueError as error:
        wrong.append(f"CREWYARD_BLOBS_PUBLIC_URL: {error}")
        return None
    return replace(made, files=files.lower() == "true")
