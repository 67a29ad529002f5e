"""oras, with bounded waits and both kinds of authentication. Called by build.registry.repository, on first use only."""

from typing import Any

import oras.auth.token
import oras.provider
from requests.adapters import HTTPAdapter

_TIMEOUT = (10.0, 120.0)


class _Bounded(HTTPAdapter):
    """No request waits for ever: seconds to connect, seconds of silence."""

    def send(self, request: Any, *arguments: Any, **more: Any) -> Any:
        more["timeout"] = more.get("timeout") or _TIMEOUT
        return super().send(request, *arguments, **more)


class _Authentication(oras.auth.token.TokenAuth):  # type: ignore[misc]
    """Basic where the registry asks for it; else a token, a new one each time a request is refused.

    (A token for reading does not allow writing, so the last one is never offered twice.)
    """

    def authenticate_request(self, original: Any, headers: Any, refresh: bool = False) -> Any:
        scheme = str(original.headers.get("Www-Authenticate", "")).partition(" ")[0].lower()
        if scheme != "basic":
            return super().authenticate_request(original, headers, refresh=True)
        known = getattr(self, "_basic_auth", "")
        if not known:
            raise ValueError("it asks for a name and a password, and there is none")
        self.session.headers["Authorization"] = f"Basic {known}"
        return {**(headers or {}), "Authorization": f"Basic {known}"}, True


def make_client(user: str, password: str, insecure: bool) -> Any:
    """An oras registry; `user` is empty where there is no credential."""
    client = oras.provider.Registry(insecure=insecure)
    client.session.mount("http://", _Bounded())
    client.session.mount("https://", _Bounded())
    authentication = _Authentication()
    authentication.session = client.session
    authentication.prefix = client.prefix
    authentication._tls_verify = True
    if user:
        authentication.set_basic_auth(user, password)
    client.auth = authentication
    return client


def request(client: Any, method: str, url: str, **more: Any) -> Any:
    """One request without retries. Raises RequestException, ValueError where it cannot authenticate."""
    # The undecorated method: the decorator would retry for minutes.
    return type(client).do_request.__wrapped__(client, url, method, **more)
