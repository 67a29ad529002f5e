"""One repository of an image registry. Called by build.assemble, build.registry.push and .prune.

oras handles authentication; timeouts, retries and streaming are implemented here, because oras has no
timeouts, pauses for minutes and reads whole blobs into memory.
"""

import contextlib
import io
import json
import random
import re
import threading
import time
from collections.abc import Iterator
from typing import IO, Any
from urllib.parse import urlencode

from build.errors import REGISTRY_PUSH, BuildRefused, InfrastructureError, RegistryError
from build.image.manifest import (
    DOCKER_MANIFEST,
    OCI_INDEX,
    OCI_MANIFEST,
    ImageInvalid,
    ImageManifest,
    config_digest_in,
    digest_of,
)
from build.registry.credential import RegistryCredential

_MAX_ATTEMPTS = 5
_MAX_MANIFEST_BYTES = 4 << 20
_CHUNK_BYTES = 1 << 20
_PAGE_SIZE = 500
_IMPORT_TIMEOUT_SECONDS = 60.0
ANONYMOUS = RegistryCredential()
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class ImageRepository:
    """A repository; `name` is `host[:port]/path`, and `path` its path."""

    def __init__(self, name: str, insecure: bool, credential: RegistryCredential = ANONYMOUS) -> None:
        self.name = name
        host, _, path = name.partition("/")
        self.path = path
        self._base = f"{'http' if insecure else 'https'}://{host}/v2/{path}"
        self._host, self._insecure, self._credential = host, insecure, credential
        self._client: Any = None
        self._import_thread: threading.Thread | None = None

    def prepare(self) -> None:
        """Start importing the registry client in the background."""
        self._import_thread = threading.Thread(target=_import_client, daemon=True, name="registry")
        self._import_thread.start()

    def image(self, reference: str) -> ImageManifest | None:
        """Return the image of a tag or digest, or None. Raises BuildRefused or InfrastructureError."""
        accept = {"Accept": f"{DOCKER_MANIFEST}, {OCI_MANIFEST}"}
        response = self._request_with_retries("GET", f"{self._base}/manifests/{reference}", headers=accept)
        if response.status_code == 404:
            return None
        self._expect(response, 200, f"reading {self.name}:{reference}")
        kind = str(response.headers.get("Content-Type", "")).partition(";")[0]
        manifest = _check_size(response.content)
        try:
            config = self._request_with_retries("GET", f"{self._base}/blobs/{config_digest_in(manifest)}")
        except ImageInvalid as error:
            raise InfrastructureError(f"{self.name}:{reference}: {error}") from None
        self._expect(config, 200, f"reading the configuration of {self.name}:{reference}")
        image = ImageManifest(kind, manifest, _check_size(config.content))
        if image.config_digest != config_digest_in(manifest) or (
            _DIGEST.fullmatch(reference) and image.digest != reference
        ):
            raise InfrastructureError(f"{self.name}:{reference}: the registry returned other content")
        return image

    def digest(self, reference: str) -> str | None:
        """Return the digest of a tag's manifest, or None. Raises BuildRefused or InfrastructureError."""
        accept = {"Accept": f"{DOCKER_MANIFEST}, {OCI_MANIFEST}, {OCI_INDEX}"}
        response = self._request_with_retries("HEAD", f"{self._base}/manifests/{reference}", headers=accept)
        if response.status_code == 404:
            return None
        self._expect(response, 200, f"looking for {self.name}:{reference}")
        header_digest = str(response.headers.get("Docker-Content-Digest", ""))
        if _DIGEST.fullmatch(header_digest):
            return header_digest
        image = self.image(reference)
        return image.digest if image else None

    def index(self, tag: str) -> dict[str, Any] | None:
        """Return the index of a tag, or None. Raises BuildRefused or InfrastructureError."""
        response = self._request_with_retries(
            "GET", f"{self._base}/manifests/{tag}", headers={"Accept": OCI_INDEX}
        )
        if response.status_code == 404:
            return None
        self._expect(response, 200, f"reading {self.name}:{tag}")
        try:
            index = json.loads(_check_size(response.content))
        except ValueError:
            return None
        return index if isinstance(index, dict) else None

    def has_referrers_api(self, digest: str) -> bool:
        """Return whether the registry lists manifests by their subject. Raises as `index` does."""
        response = self._request_with_retries("GET", f"{self._base}/referrers/{digest}")
        kind = str(response.headers.get("Content-Type", "")).partition(";")[0]
        return response.status_code == 200 and kind == OCI_INDEX

    def blob(self, digest: str, max_bytes: int) -> bytes:
        """Return a blob of at most `max_bytes`. Raises BuildRefused or InfrastructureError."""
        with self.open_blob(digest) as content:
            data = content.read(max_bytes + 1)
        if len(data) > max_bytes or digest_of(data) != digest:
            raise InfrastructureError(f"{self.name}@{digest} is larger than {max_bytes} bytes, or changed")
        return data

    @contextlib.contextmanager
    def open_blob(self, digest: str) -> Iterator[IO[bytes]]:
        """Open a blob as a stream, whose digest is not verified. Raises as `blob` does."""
        from urllib3.exceptions import HTTPError  # slow import

        response = self._request_with_retries("GET", f"{self._base}/blobs/{digest}", stream=True)
        try:
            self._expect(response, 200, f"reading {self.name}@{digest}")
            # Otherwise it closes at its end, and reading on is an error.
            response.raw.auto_close = False
            yield io.BufferedReader(response.raw, _CHUNK_BYTES)
        except (OSError, HTTPError) as error:
            raise RegistryError(f"reading {self.name}@{digest}: {error}") from None
        finally:
            response.close()

    def has_blob(self, digest: str) -> bool:
        """Return whether the repository has the blob. Raises BuildRefused or InfrastructureError."""
        response = self._request_with_retries("HEAD", f"{self._base}/blobs/{digest}")
        if response.status_code == 404:
            return False
        self._expect(response, 200, f"looking into {self.name}")
        return True

    def tags(self, limit: int) -> list[str]:
        """Return at most `limit` tags, read in pages. Raises BuildRefused or InfrastructureError."""
        tags: list[str] = []
        last = ""
        while len(tags) < limit:
            query = urlencode({"n": _PAGE_SIZE, **({"last": last} if last else {})})
            response = self._request_with_retries("GET", f"{self._base}/tags/list?{query}")
            if response.status_code == 404:
                break
            self._expect(response, 200, f"listing {self.name}")
            page = [str(tag) for tag in json.loads(_check_size(response.content)).get("tags") or ()]
            if not page or page[-1] == last:
                break
            tags += page
            last = page[-1]
            if "Link" not in response.headers:
                break
        return tags[:limit]

    def delete(self, digest: str) -> bool | None:
        """Delete a manifest and its tags; return whether it existed, None where deletion is unsupported.

        Raises BuildRefused or InfrastructureError.
        """
        response = self._request_with_retries("DELETE", f"{self._base}/manifests/{digest}")
        if response.status_code == 405:
            return None
        if response.status_code == 404:
            return False
        self._expect(response, 202, f"removing {self.name}@{digest}")
        return True

    def push_blob(self, content: IO[bytes], size: int, digest: str, mount_from: str = "") -> bool:
        """Upload the seekable `content` from its position unless the blob exists; return whether it was sent.

        `mount_from` is a repository of the same registry that may have the blob. Raises
        BuildRefused(RegistryPush) for a permanent error, InfrastructureError otherwise.
        """
        if self.has_blob(digest):
            return False
        start, problem = content.tell(), ""
        for attempt in range(_MAX_ATTEMPTS):
            upload = self._start_upload(digest, mount_from)
            if upload.status_code == 201:
                return False
            content.seek(start)
            upload_url = self._upload_url(str(upload.headers.get("Location", "")), digest)
            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
            try:
                response = self._request("PUT", upload_url, data=_Upload(content, size), headers=headers)
            except InfrastructureError as error:
                problem = str(error)
            else:
                if response.status_code != 404:
                    self._expect(response, 201, f"uploading to {self.name}")
                    return True
                # It restarted, or another of its replicas answered.
                problem = f"the registry of {self.name} lost the upload"
            _pause(attempt)
        raise RegistryError(f"uploading a layer failed: {problem}")

    def mount_blob(self, digest: str, mount_from: str) -> bool:
        """Take a blob from another repository of the registry; return False where the registry does not.

        Raises BuildRefused or InfrastructureError.
        """
        return bool(self._start_upload(digest, mount_from).status_code == 201)

    def push_image(self, image: ImageManifest, tag: str) -> str:
        """Push configuration and manifest as `tag` and return the digest; the layers must exist."""
        self.push_blob(io.BytesIO(image.config), len(image.config), image.config_digest)
        return self.push_manifest(tag, image.manifest, image.media_type)

    def push_manifest(self, tag: str, manifest: bytes, media_type: str) -> str:
        """Push a manifest as `tag` and return the digest. Raises BuildRefused or InfrastructureError."""
        response = self._request_with_retries(
            "PUT", f"{self._base}/manifests/{tag}", data=manifest, headers={"Content-Type": media_type}
        )
        self._expect(response, 201, f"pushing {self.name}:{tag}")
        return digest_of(manifest)

    def _start_upload(self, digest: str, mount_from: str) -> Any:
        """Return the answer to a new upload: 201 where the blob was mounted, else 202."""
        query = f"?{urlencode({'mount': digest, 'from': mount_from})}" if mount_from else ""
        upload = self._request_with_retries(
            "POST", f"{self._base}/blobs/uploads/{query}", headers={"Content-Length": "0"}
        )
        if upload.status_code != 201:
            self._expect(upload, 202, f"uploading to {self.name}")
        return upload

    def _upload_url(self, location: str, digest: str) -> str:
        if location.startswith("/"):
            location = f"{self._base.partition('/v2/')[0]}{location}"
        return f"{location}{'&' if '?' in location else '?'}{urlencode({'digest': digest})}"

    def _request_with_retries(self, method: str, url: str, **options: Any) -> Any:
        problem = ""
        for attempt in range(_MAX_ATTEMPTS):
            try:
                return self._request(method, url, **options)
            except InfrastructureError as error:
                problem = str(error)
            _pause(attempt)
        raise RegistryError(f"the registry of {self.name} is unavailable: {problem}")

    def _request(self, method: str, url: str, **options: Any) -> Any:
        self._wait_for_import()
        import requests

        from build.registry import client  # slow import

        if self._client is None:
            user, password = self._credential.pair(self._host)
            self._client = client.make_client(user, password, self._insecure)
        try:
            return client.request(self._client, method, url, **options)
        except requests.RequestException as error:
            raise RegistryError(f"{type(error).__name__}: {error}") from None
        except ValueError as error:  # oras raises it where authentication fails
            message = f"registry authentication failed for {self.name}: {error}"
            raise BuildRefused(REGISTRY_PUSH, message, self._credential.hint) from None

    def _wait_for_import(self) -> None:
        """Wait for the background import; a second import of the same modules could wait without bound."""
        if self._import_thread is not None:
            self._import_thread.join(_IMPORT_TIMEOUT_SECONDS)
            if self._import_thread.is_alive():
                raise InfrastructureError(
                    f"the registry client was not imported within {_IMPORT_TIMEOUT_SECONDS:.0f} s"
                )
            self._import_thread = None

    def _expect(self, response: Any, status: int, action: str) -> None:
        if response.status_code == status:
            return
        body = " ".join(str(response.text)[:300].split())
        if 400 <= response.status_code < 500:
            raise BuildRefused(
                REGISTRY_PUSH,
                f"{action}: the registry answered {response.status_code}: {body}",
                self._credential.hint,
            )
        raise RegistryError(f"{action}: the registry answered {response.status_code}: {body}")


class _Upload:
    """A request body of known length: streamed, without chunked transfer encoding."""

    def __init__(self, content: IO[bytes], size: int) -> None:
        self._content, self._left = content, size
        self._size = size

    def __len__(self) -> int:
        return self._size

    def read(self, size: int = -1) -> bytes:
        count = min(_CHUNK_BYTES if size < 0 else size, self._left)
        data = self._content.read(count) if count else b""
        self._left -= len(data)
        return data


def _import_client() -> None:
    # A failed import is raised again where the client is used.
    with contextlib.suppress(Exception):
        from build.registry import client  # noqa: F401


def _check_size(data: bytes) -> bytes:
    if len(data) > _MAX_MANIFEST_BYTES:
        raise InfrastructureError(f"manifest or configuration of {len(data)} bytes is too large")
    return data


def _pause(attempt: int) -> None:
    if attempt + 1 < _MAX_ATTEMPTS:
        time.sleep(0.2 * 2**attempt * random.uniform(0.8, 1.2))
