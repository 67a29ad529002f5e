"""A Secret beside the crews for as long as a test needs it."""

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.e2e.testbed import NAMESPACE, E2eTestbed


@asynccontextmanager
async def secret(testbed: E2eTestbed, **entries: str) -> AsyncIterator[str]:
    """Its drawn name; an entry's `_` is a `-` in the Secret, as keys of indexes are written."""
    name = f"e2e-{secrets.token_hex(4)}"
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "stringData": {key.replace("_", "-"): value for key, value in entries.items()},
    }
    await testbed.kubectl("create", "-f", "-", stdin=json.dumps(body))
    try:
        yield name
    finally:
        await testbed.kubectl("delete", "secret", name, "--ignore-not-found")
