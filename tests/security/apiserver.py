"""A client of the apiserver by plain HTTP: as administrator, by impersonation, or with a token."""

import base64
import json
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import aiohttp
import yaml

MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class ApiserverResponse:
    """An answer: its status and its words."""

    status: int
    text: str

    @property
    def data(self) -> Any:
        """The JSON of it."""
        return json.loads(self.text)


class ApiserverClient:
    """Two connections to the server of KUBECONFIG: with the certificate of its user, and without."""

    def __init__(self) -> None:
        found = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
        cluster, user = found["clusters"][0]["cluster"], found["users"][0]["user"]
        self._url = cluster["server"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._plain = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=authority))
        )
        known = ssl.create_default_context(cadata=authority)
        with NamedTemporaryFile() as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]) + b"\n")
            pair.write(base64.b64decode(user["client-key-data"]))
            pair.flush()
            known.load_cert_chain(pair.name)
        self._admin = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=known))

    async def close(self) -> None:
        """Close both."""
        await self._plain.close()
        await self._admin.close()

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str = "",
        user: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> ApiserverResponse:
        """One call with a token, as `user`, or as the administrator. A PATCH is a merge patch."""
        sent = dict(headers or {})
        if body is not None:
            sent.setdefault("Content-Type", MERGE if method == "PATCH" else "application/json")
        if token:
            sent["Authorization"] = f"Bearer {token}"
        if user:
            sent["Impersonate-User"] = user
        session = self._plain if token else self._admin
        data = None if body is None else json.dumps(body)
        limit = aiohttp.ClientTimeout(total=60)
        async with session.request(
            method, self._url + path, data=data, headers=sent, timeout=limit
        ) as answer:
            return ApiserverResponse(answer.status, (await answer.read()).decode(errors="replace"))

    async def token_of(self, namespace: str, account: str) -> str:
        """A token of an account, for the apiserver itself."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 600},
        }
        return str((await self.call("POST", path, asked)).data["status"]["token"])
