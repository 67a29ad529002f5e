"""One repository of an image registry. Called by build.assemble and build.registry.push.

oras speaks the authentication of registries; waits, retries and streaming are
ours, since it has no timeouts, pauses for minutes and reads blobs whole.
"""

import contextlib
import io
import json
import random
import re
import threading
import time
from typing import IO, Any
from urllib.parse import urlencode

from build.errors import REGISTRY_PUSH, Infrastructure, Refused, RegistryTrouble
from build.image.manifest import (
    DOCKER_MANIFEST,
    OCI_MANIFEST,
    Image,
    ImageInvalid,
    config_digest_in,
    digest_of,
)
from build.registry.credential import Credential

_ATTEMPTS = 5
_MANIFEST_BYTES = 4 << 20
_CHUNK = 1 << 20
_PAGE = 500
_IMPORT_SECONDS = 60.0
NOBODY = Credential()
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Repository:
    """`name` is `host[:port]/path`."""

    def __init__(self, name: str, insecure: bool, credential: Credential = NOBODY) -> None:
        self.name = name
        host, _, path = name.partition("/")
        self._base = f"{'http' if insecure else 'https'}://{host}/v2/{path}"
        self._host, self._insecure, self._credential = host, insecure, credential
        self._connected: Any = None
        self._importing: threading.Thread | None = None

    def prepare(self) -> None:
        """Imports what talking to a registry needs, beside whatever else is going on."""
        self._importing = threading.Thread(target=_import_client, daemon=True, name="registry")
        self._importing.start()

    def image(self, reference: str) -> Image | None:
        """Manifest and configuration of a tag or digest; None where there is none. Raises Infrastructure."""
        accept = {"Accept": f"{DOCKER_MANIFEST}, {OCI_MANIFEST}"}
        answer = self._ask("GET", f"{self._base}/manifests/{reference}", headers=accept)
        if answer.status_code == 404:
            return None
        self._expect(answer, 200, f"reading {self.name}:{reference}")
        kind = str(answer.headers.get("Content-Type", "")).partition(";")[0]
        manifest = _limited(answer.content)
        try:
            config = self._ask("GET", f"{self._base}/blobs/{config_digest_in(manifest)}")
        except ImageInvalid as error:
            raise Infrastructure(f"{self.name}:{reference}: {error}") from None
        self._expect(config, 200, f"reading the configuration of {self.name}:{reference}")
        return Image(kind, manifest, _limited(config.content))

    def digest(self, reference: str) -> str | None:
        """The digest of a tag's manifest; None where there is none. Raises Refused or Infrastructure."""
        accept = {"Accept": f"{DOCKER_MANIFEST}, {OCI_MANIFEST}"}
        answer = self._ask("HEAD", f"{self._base}/manifests/{reference}", headers=accept)
        if answer.status_code == 404:
            return None
        self._expect(answer, 200, f"looking for {self.name}:{reference}")
        told = str(answer.headers.get("Docker-Content-Digest", ""))
        if _DIGEST.fullmatch(told):
            return told
        image = self.image(reference)
        return image.digest if image else None

    def has_blob(self, digest: str) -> bool:
        """Whether the repository holds the blob. Raises Refused or Infrastructure."""
        answer = self._ask("HEAD", f"{self._base}/blobs/{digest}")
        if answer.status_code == 404:
            return False
        self._expect(answer, 200, f"looking into {self.name}")
        return True

    def tags(self, most: int) -> list[str]:
        """At most `most` tags, a page at a time. Raises Refused or Infrastructure."""
        found: list[str] = []
        last = ""
        while len(found) < most:
            query = urlencode({"n": _PAGE, **({"last": last} if last else {})})
            answer = self._ask("GET", f"{self._base}/tags/list?{query}")
            if answer.status_code == 404:
                break
            self._expect(answer, 200, f"listing {self.name}")
            page = [str(tag) for tag in json.loads(_limited(answer.content)).get("tags") or ()]
            if not page or page[-1] == last:
                break
            found += page
            last = page[-1]
            if "Link" not in answer.headers:
                break
        return found[:most]

    def delete(self, digest: str) -> bool | None:
        """Whether the manifest was there and is removed; None where the registry does not delete.

        All its tags go with it. Raises Refused or Infrastructure.
        """
        answer = self._ask("DELETE", f"{self._base}/manifests/{digest}")
        if answer.status_code == 405:
            return None
        if answer.status_code == 404:
            return False
        self._expect(answer, 202, f"removing {self.name}@{digest}")
        return True

    def push_blob(self, content: IO[bytes], size: int, digest: str, mount_from: str = "") -> bool:
        """Uploads a seekable `content` from where it starts, unless it is there already; whether it was sent.

        `mount_from` is a repository of the same registry that may hold it. Raises
        Refused(RegistryPush) for an answer that stays, Infrastructure for the rest.
        """
        if self.has_blob(digest):
            return False
        start, problem = content.tell(), ""
        for attempt in range(_ATTEMPTS):
            query = f"?{urlencode({'mount': digest, 'from': mount_from})}" if mount_from else ""
            opened = self._ask("POST", f"{self._base}/blobs/uploads/{query}", headers={"Content-Length": "0"})
            if opened.status_code == 201:
                return False
            self._expect(opened, 202, f"uploading to {self.name}")
            content.seek(start)
            target = self._upload_address(str(opened.headers.get("Location", "")), digest)
            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
            try:
                answer = self._once("PUT", target, data=_Upload(content, size), headers=headers)
            except Infrastructure as error:
                problem = str(error)
            else:
                if not _transient(answer.status_code):
                    self._expect(answer, 201, f"uploading to {self.name}")
                    return True
                problem = f"{self.name} answered {answer.status_code}"
            _pause(attempt)
        raise RegistryTrouble(f"uploading a layer failed: {problem}")

    def push_image(self, image: Image, tag: str) -> str:
        """Pushes configuration and manifest under `tag` and gives the digest; the layers must be there."""
        self.push_blob(io.BytesIO(image.config), len(image.config), image.config_digest)
        answer = self._ask(
            "PUT",
            f"{self._base}/manifests/{tag}",
            data=image.manifest,
            headers={"Content-Type": image.media_type},
        )
        self._expect(answer, 201, f"pushing {self.name}:{tag}")
        return digest_of(image.manifest)

    def _upload_address(self, location: str, digest: str) -> str:
        if location.startswith("/"):
            location = f"{self._base.partition('/v2/')[0]}{location}"
        return f"{location}{'&' if '?' in location else '?'}{urlencode({'digest': digest})}"

    def _ask(self, method: str, url: str, **more: Any) -> Any:
        problem = ""
        for attempt in range(_ATTEMPTS):
            try:
                answer = self._once(method, url, **more)
            except Infrastructure as error:
                problem = str(error)
            else:
                if not _transient(answer.status_code):
                    return answer
                problem = f"it answered {answer.status_code}"
            _pause(attempt)
        raise RegistryTrouble(f"the registry of {self.name} is not usable: {problem}")

    def _once(self, method: str, url: str, **more: Any) -> Any:
        self._imported()
        import requests

        from build.registry import client  # slow to import: not before it is needed

        if self._connected is None:
            user, password = self._credential.pair(self._host)
            self._connected = client.make_client(user, password, self._insecure)
        try:
            return client.request(self._connected, method, url, **more)
        except requests.RequestException as error:
            raise RegistryTrouble(f"{type(error).__name__}: {error}") from None
        except ValueError as error:  # how oras says that it cannot authenticate
            said = f"the registry refuses what it was shown for {self.name}: {error}"
            raise Refused(REGISTRY_PUSH, said, self._credential.hint) from None

    def _imported(self) -> None:
        """Waits for the import that was begun: two threads at the same modules would wait without a bound."""
        if self._importing is not None:
            self._importing.join(_IMPORT_SECONDS)
            if self._importing.is_alive():
                raise Infrastructure(f"the registry's client was not loaded within {_IMPORT_SECONDS:.0f} s")
            self._importing = None

    def _expect(self, answer: Any, status: int, doing: str) -> None:
        if answer.status_code == status:
            return
        said = " ".join(str(answer.text)[:300].split())
        if 400 <= answer.status_code < 500:
            raise Refused(
                REGISTRY_PUSH,
                f"{doing}: the registry answered {answer.status_code}: {said}",
                self._credential.hint,
            )
        raise RegistryTrouble(f"{doing}: the registry answered {answer.status_code}: {said}")


class _Upload:
    """A body whose length is told beforehand, so that it is neither read whole nor sent in pieces."""

    def __init__(self, content: IO[bytes], size: int) -> None:
        self._content, self._left = content, size
        self._size = size

    def __len__(self) -> int:
        return self._size

    def read(self, size: int = -1) -> bytes:
        wanted = min(_CHUNK if size < 0 else size, self._left)
        data = self._content.read(wanted) if wanted else b""
        self._left -= len(data)
        return data


def _import_client() -> None:
    # What fails here fails again, and is told, where it is needed.
    with contextlib.suppress(Exception):
        from build.registry import client  # noqa: F401


def _transient(status: int) -> bool:
    return status >= 500 or status in (408, 425, 429)


def _limited(data: bytes) -> bytes:
    if len(data) > _MANIFEST_BYTES:
        raise Infrastructure(f"a manifest or configuration of {len(data)} bytes is too large")
    return data


def _pause(attempt: int) -> None:
    if attempt + 1 < _ATTEMPTS:
        time.sleep(0.2 * 2**attempt * random.uniform(0.8, 1.2))
