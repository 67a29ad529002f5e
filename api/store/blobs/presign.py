"""Presigned URLs for single objects of a bucket: S3 requests, signature version 4.

Pure. Made by `api.config`, used by the routes of uploads and artifacts. Implemented here because the
object-store library signs neither request nor response headers: a client could then upload any length and
hash, and browsers would show a crew's file instead of saving it.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

_ALGORITHM = "AWS4-HMAC-SHA256"
MAX_EXPIRY_SECONDS = 7 * 24 * 3600
"""The longest expiry that S3 accepts."""


@dataclass(frozen=True)
class PresignedRequest:
    """A presigned request: its URL and the headers that the client must send."""

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class UrlSigner:
    """Signer for objects below `prefix` of a bucket; `endpoint` is the store's URL as clients reach it."""

    endpoint: str
    bucket: str
    prefix: str
    region: str
    access_key: str
    secret_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)
    direct_downloads: bool = False
    """Whether clients also download artifacts through presigned URLs, not only upload."""

    def put(self, key: str, size: int, sha256: str | None, now: datetime, seconds: int) -> PresignedRequest:
        """Sign an upload of exactly `size` bytes, with this SHA-256 (hex) if known. The store checks both."""
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        if sha256 is not None:
            headers["x-amz-checksum-sha256"] = base64.b64encode(bytes.fromhex(sha256)).decode()
        return PresignedRequest(self._url("PUT", key, headers, {}, now, seconds), headers)

    def get(self, key: str, response_headers: Mapping[str, str], now: datetime, seconds: int) -> str:
        """Sign a download; `response_headers` are headers of the store's response (Content-Type, …)."""
        query = {f"response-{name.lower()}": value for name, value in response_headers.items()}
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
        object_path = "/".join(part for part in (self.bucket, self.prefix, key) if part)
        path = f"{parts.path.rstrip('/')}/{quote(object_path, safe='/-_.~')}"
        moment = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
        scope = f"{moment[:8]}/{self.region}/s3/aws4_request"
        signed = {"host": parts.netloc, **{name.lower(): value for name, value in headers.items()}}
        names = ";".join(sorted(signed))
        parameters = {
            **query,
            "X-Amz-Algorithm": _ALGORITHM,
            "X-Amz-Credential": f"{self.access_key}/{scope}",
            "X-Amz-Date": moment,
            "X-Amz-Expires": str(max(1, min(seconds, MAX_EXPIRY_SECONDS))),
            "X-Amz-SignedHeaders": names,
            **({"X-Amz-Security-Token": self.session_token} if self.session_token else {}),
        }
        canonical = "&".join(
            f"{quote(name, safe='-_.~')}={quote(parameters[name], safe='-_.~')}"
            for name in sorted(parameters)
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


def make_signer(environ: Mapping[str, str], bucket_url: str | None, endpoint: str) -> UrlSigner:
    """Return the signer of a bucket. Raises ValueError if it has no URL or no key to sign with."""
    parts, bucket = urlsplit(endpoint), urlsplit(bucket_url or "")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be the http:// or https:// URL of the S3 endpoint as clients reach it")
    if bucket.scheme != "s3":
        raise ValueError("needs CREWYARD_BLOBS_URL=s3://bucket/prefix: other stores cannot presign URLs")
    access, secret = environ.get("AWS_ACCESS_KEY_ID", ""), environ.get("AWS_SECRET_ACCESS_KEY", "")
    if not access or not secret:
        raise ValueError("needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to sign URLs")
    # Clients send the host in lower case, without the scheme's own port, and it is signed.
    host = parts.netloc.lower().removesuffix(":443" if parts.scheme == "https" else ":80")
    return UrlSigner(
        endpoint=parts._replace(netloc=host).geturl().rstrip("/"),
        bucket=bucket.netloc,
        prefix=bucket.path.strip("/"),
        region=environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1",
        access_key=access,
        secret_key=secret,
        session_token=environ.get("AWS_SESSION_TOKEN", ""),
    )


def parse_signer(environ: Mapping[str, str], problems: list[str]) -> UrlSigner | None:
    """Return the signer that the environment configures, or None; add each mistake to `problems`."""
    endpoint, direct = environ.get("CREWYARD_BLOBS_PUBLIC_URL", ""), environ.get("CREWYARD_BLOBS_DIRECT", "")
    if direct.lower() not in ("", "true", "false"):
        problems.append("CREWYARD_BLOBS_DIRECT: must be true or false")
    if not endpoint:
        if direct.lower() == "true":
            problems.append("CREWYARD_BLOBS_DIRECT: needs CREWYARD_BLOBS_PUBLIC_URL, the bucket's address")
        return None
    try:
        made = make_signer(environ, environ.get("CREWYARD_BLOBS_URL", "").rstrip("/"), endpoint)
    except ValueError as error:
        problems.append(f"CREWYARD_BLOBS_PUBLIC_URL: {error}")
        return None
    return replace(made, direct_downloads=direct.lower() == "true")
