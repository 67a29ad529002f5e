"""oras client with timeouts, basic and token authentication. Imported by registry.repository on first use."""

from typing import Any
from urllib.parse import urlsplit

import oras.auth.token
import oras.provider
from requests import HTTPError
from requests.adapters import HTTPAdapter

from build.errors import is_temporary

_TIMEOUTS_SECONDS = (10.0, 120.0)


class _Adapter(HTTPAdapter):
    """Adapter with a default timeout for connecting and reading; raises HTTPError for a temporary failure.

    oras would take one of the token service for a refusal.
    """

    def send(self, request: Any, *arguments: Any, **more: Any) -> Any:
        more["timeout"] = more.get("timeout") or _TIMEOUTS_SECONDS
        response = super().send(request, *arguments, **more)
        if is_temporary(response.status_code):
            response.close()
            # Without path and query: a redirect may have signed them.
            raise HTTPError(f"{urlsplit(response.url).hostname} answered {response.status_code}")
        return response


class _Authentication(oras.auth.token.TokenAuth):  # type: ignore[misc]
    """Basic authentication where the registry requests it; else a new token for each refused request.

    A token for reading does not allow writing, therefore tokens are not reused.
    """

    def authenticate_request(self, original: Any, headers: Any, refresh: bool = False) -> Any:
        scheme = str(original.headers.get("Www-Authenticate", "")).partition(" ")[0].lower()
        if scheme != "basic":
            return super().authenticate_request(original, headers, refresh=True)
        basic = getattr(self, "_basic_auth", "")
        if not basic:
            raise ValueError("the registry requires credentials and none are configured")
        self.session.headers["Authorization"] = f"Basic {basic}"
        return {**(headers or {}), "Authorization": f"Basic {basic}"}, True


def make_client(user: str, password: str, insecure: bool) -> Any:
    """Return an oras registry client; `user` is empty where there is no credential."""
    client = oras.provider.Registry(insecure=insecure)
    client.session.mount("http://", _Adapter())
    client.session.mount("https://", _Adapter())
    authentication = _Authentication()
    authentication.session = client.session
    authentication.prefix = client.prefix
    authentication._tls_verify = True
    if user:
        authentication.set_basic_auth(user, password)
    client.auth = authentication
    return client


def request(client: Any, method: str, url: str, **options: Any) -> Any:
    """Send one request without retries. Raises RequestException; ValueError where authentication fails.

    An answer by which the registry or its token service is unavailable raises HTTPError, too.
    """
    # The undecorated method: the decorator would retry for minutes.
    return type(client).do_request.__wrapped__(client, url, method, **options)
