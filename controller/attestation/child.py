"""`python3 -m controller.attestation.child`: requests to the image registry, in a separate process.

It unpacks layers that code of a crew wrote, which can exhaust only this process. A request is one line of
JSON on stdin, with the credential; the response on stdout is one line, `{"problem": …}` after an error.
Started by `controller.attestation.registry`.
"""

import base64
import json
import os
import resource
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from build.errors import BuildRefused, InfrastructureError
from build.image.distributions import read_layer
from build.image.manifest import ImageInvalid, layer_digests_in
from build.registry import attachments
from build.registry.credential import RegistryCredential
from build.registry.repository import ImageRepository

MAX_REQUEST_BYTES = 64 << 20
MAX_MEMORY_BYTES = 192 << 20
"""Memory beyond the size of the process at its start."""
_CHILD_NICENESS = 10


def limit_resources() -> None:
    """Limit memory and priority of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    memory = pages * resource.getpagesize() + MAX_MEMORY_BYTES
    for limit, value in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(limit, (value, value))
    os.nice(_CHILD_NICENESS)


def handle(request: dict[str, Any]) -> dict[str, Any]:
    """Return the response to a request; never raises."""
    credential = RegistryCredential(str(request["auth"]), str(request["secret"]))
    repository = ImageRepository(str(request["repository"]), bool(request["insecure"]), credential)
    try:
        return _ACTIONS[request["action"]](repository, request)
    except (BuildRefused, InfrastructureError, ImageInvalid) as error:
        return {"problem": " ".join(str(error).split())[:1000]}
    except Exception as error:
        # Such as a MemoryError: the controller shows it, and asks again later.
        return {"problem": f"{type(error).__name__}: {' '.join(str(error).split())[:1000]}"}


def _envelopes(repository: ImageRepository, request: dict[str, Any]) -> dict[str, Any]:
    found = attachments.read_envelopes(repository, request["digest"])
    return {"envelopes": [base64.b64encode(envelope).decode() for envelope in found]}


def _layers(repository: ImageRepository, request: dict[str, Any]) -> dict[str, Any]:
    image = repository.image(request["digest"])
    if image is None or image.digest != request["digest"]:
        raise InfrastructureError(f"{repository.name}@{request['digest']} is not in the registry")
    return {"layers": layer_digests_in(image.manifest)}


def _layer(repository: ImageRepository, request: dict[str, Any]) -> dict[str, Any]:
    started = time.monotonic()
    with repository.open_blob(request["digest"]) as content:
        layer = read_layer(content, time.monotonic() + float(request["seconds"]))
    return {**asdict(layer), "seconds": time.monotonic() - started}


def _attach(repository: ImageRepository, request: dict[str, Any]) -> dict[str, Any]:
    envelopes = [(kind, base64.b64decode(envelope)) for kind, envelope in request["envelopes"]]
    attachments.attach(repository, request["digest"], envelopes)
    return {}


_ACTIONS = {"envelopes": _envelopes, "layers": _layers, "layer": _layer, "attach": _attach}


def main() -> int:
    """Serve requests until stdin closes. Return 0."""
    from build.registry import client  # noqa: F401  # its memory counts as that of the start

    limit_resources()
    while line := sys.stdin.readline(MAX_REQUEST_BYTES):
        sys.stdout.write(json.dumps(handle(json.loads(line))) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
