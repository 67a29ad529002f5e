"""A real S3 server over a directory, for the tests of blobs. It dies with the test process."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from contextlib import ExitStack
from pathlib import Path

from kube.owned_directory import owned_directory
from tests.testbed.ports import free_port, until_listening
from tests.unit.api.store.postgres_server import die_with_parent

MISSING = "no versitygw: `make tools` builds it; set CREWYARD_TOOLS to its directory if it is not in PATH"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "crewyard", "AWS_SECRET_ACCESS_KEY": "not-to-be-logged"}


def program() -> str | None:
    """Return the path of versitygw, or None."""
    paths = (os.environ.get("CREWYARD_TOOLS", ""), os.environ.get("PATH", ""))
    return shutil.which("versitygw", path=os.pathsep.join(paths))


class S3Server:
    """An S3 server; `environment` are the variables that point clients to it."""

    def __init__(self, argv0: str) -> None:
        self._argv0 = argv0
        self._owned = ExitStack()
        self.directory = self._owned.enter_context(
            owned_directory(Path(tempfile.gettempdir()), "crewyard-s3-")
        )
        for name in ("buckets", "attributes"):
            (self.directory / name).mkdir()
        self.port = free_port()
        self.environment = {
            **CREDENTIALS,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self, secret: str = CREDENTIALS["AWS_SECRET_ACCESS_KEY"]) -> None:
        """Start the server; return once it listens."""
        access = CREDENTIALS["AWS_ACCESS_KEY_ID"]
        listen, buckets = f"127.0.0.1:{self.port}", self.directory / "buckets"
        self._process = subprocess.Popen(
            [self._argv0, "--access", access, "--secret", secret, "--port", listen, "--quiet",
             "posix", "--sidecar", str(self.directory / "attributes"), str(buckets)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent,
        )  # fmt: skip
        until_listening(self.port, 60)

    def new(self) -> Path:
        """Create a bucket; return its directory, which has the bucket's name."""
        directory = self.directory / "buckets" / f"b{uuid.uuid4().hex}"
        directory.mkdir()
        return directory

    def signal(self, number: signal.Signals) -> None:
        """Send the server a signal; after SIGSTOP, return once it has stopped."""
        assert self._process is not None
        self._process.send_signal(number)
        tasks = Path(f"/proc/{self._process.pid}/task")
        while number == signal.SIGSTOP and any(
            path.read_text().rpartition(")")[2].split()[0] != "T" for path in tasks.glob("*/stat")
        ):
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop the server."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def close(self) -> None:
        """Stop the server and delete its directory."""
        self.stop()
        self._owned.close()
