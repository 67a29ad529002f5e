"""Command `wait`: a pod that was started before its build imports the modules, and waits for the build.

The controller answers a bounded long poll with the variables of the build. Called by build.__main__.
"""

import http
import http.client
import json
import os
import random
import signal
import time
from collections.abc import Callable, Mapping

from build.api_client import InternalApiClient
from build.json_object import variable

VARIABLES = ("CREWYARD_DEPLOYMENT", "CREWYARD_TOKEN", "CREWYARD_BUILD")
_WAIT_SECONDS = 20
_CALL_TIMEOUT_SECONDS = 30.0
_MAX_PAUSE_SECONDS = 5.0


class NoBuild(Exception):
    """The pod gets no build: the controller does not know it, or its token has expired."""


def wait_for_build(environ: Mapping[str, str], sleep: Callable[[float], None] = time.sleep) -> dict[str, str]:
    """Return the variables of the pod's build; `sleep` pauses after a failure, in seconds.

    Raises NoBuild and BuildSettingsInvalid.
    """
    # Process 1 has no default action for a signal.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    try:
        _prepare()
        return _ask(environ, sleep)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _ask(environ: Mapping[str, str], sleep: Callable[[float], None]) -> dict[str, str]:
    controller = InternalApiClient(
        variable(environ, "CREWYARD_CONTROLLER_URL"),
        variable(environ, "CREWYARD_TOKEN"),
        _CALL_TIMEOUT_SECONDS,
        environ.get("CREWYARD_INTERNAL_CA", ""),
    )
    path = f"/internal/v1/builders/{variable(environ, 'CREWYARD_BUILDER')}/wait"
    body = {"pod_uid": variable(environ, "CREWYARD_POD_UID"), "wait_seconds": _WAIT_SECONDS}
    failures = 0
    while True:
        try:
            status, text = controller.post(path, body)
            answer = json.loads(text) if status == http.HTTPStatus.OK else {}
        except (OSError, http.client.HTTPException, ValueError):
            status, answer = http.HTTPStatus.SERVICE_UNAVAILABLE, {}
        if status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.NOT_FOUND):
            raise NoBuild(f"the controller responded {status} to a pod that waits for a build")
        if answer.get("state") == "bound":
            variables = answer["variables"]
            return {name: str(variables[name]) for name in VARIABLES}
        if answer.get("state") == "waiting":
            failures = 0
            continue
        failures += 1
        sleep(min(_MAX_PAUSE_SECONDS, 0.1 * 2.0 ** min(failures, 10)) * (0.5 + random.random() / 2))


def _prepare() -> None:
    """Import what `assemble` needs, and make the layer that no build decides."""
    import build.registry.client
    import build.source.fetch_archive
    import build.source.fetch_git
    import build.source.git_fetcher
    import build.source.git_outside
    import build.source.git_tree
    import build.source.verify_commit  # noqa: F401
    from build.assemble import prepare_runner_layer
    from build.image.runner_files import RUNNER

    prepare_runner_layer(RUNNER)
