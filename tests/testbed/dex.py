"""The OpenID provider Dex with users and groups, for tests of the sign-in. It dies with the test process."""

import json
import os
import shutil
import subprocess
from typing import Any

from tests.testbed.ports import free_port, until_listening
from tests.unit.api.store.postgres_server import die_with_parent

MISSING = "no dex: `make tools` builds it; set CREWYARD_TOOLS to its directory if it is not in PATH"
CLIENT_ID, CLIENT_SECRET = "crewyard", "not-to-be-logged"
PASSWORD = "tides"


def program() -> str | None:
    """Return the path of Dex, or None."""
    paths = (os.environ.get("CREWYARD_TOOLS", ""), os.environ.get("PATH", ""))
    return shutil.which("dex", path=os.pathsep.join(paths))


class DexServer:
    """A provider for one client, which may redirect to `redirect_uri`; `groups` are those of each user."""

    def __init__(
        self, argv0: str, redirect_uri: str, groups: dict[str, list[str]], token_seconds: int = 3600
    ) -> None:
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}/dex"
        users: dict[str, Any] = {
            name: {"ID": f"id-{name}", "Email": f"{name}@example.com", "Password": PASSWORD, "Groups": of}
            for name, of in groups.items()
        }
        settings = {
            "Address": f"127.0.0.1:{self.port}",
            "Issuer": self.issuer,
            "Client": {"id": CLIENT_ID, "secret": CLIENT_SECRET, "redirectURIs": [redirect_uri]},
            "IDTokenSeconds": token_seconds,
            "Users": users,
        }
        self._process = subprocess.Popen(
            [argv0], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(settings).encode())
        self._process.stdin.close()
        until_listening(self.port, 60)

    def stop(self) -> None:
        """Stop it."""
        self._process.kill()
        self._process.wait()
