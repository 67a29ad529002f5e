"""An installation for a test, gone at its end."""

import shutil
import socket
from collections.abc import Iterator

import pytest

from tests.cluster.install.installation import Installation, image


@pytest.fixture
def installation() -> Iterator[Installation]:
    """Not installed yet, but for its volume."""
    if shutil.which("helm") is None:
        pytest.skip("no helm: `make tools` builds it")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    made = Installation(port, image())
    try:
        made.prepare()
        yield made
    finally:
        made.remove()
