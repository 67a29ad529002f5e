"""TLS options of a connection to PostgreSQL, from `?ssl=` of its URL. Called by all that connect.

The driver alone looks for certificate authorities in the user's home, which a pod does not have; here they
are the system's, plus those of SSL_CERT_FILE. Only SQLAlchemy understands `ssl` in a URL: asyncpg would send
it to the server as a setting.
"""

import ssl
from typing import Any

from sqlalchemy import URL

_NAMES = ("ssl", "sslmode")
_UNCHECKED = ("disable", "allow", "prefer", "require")
_CHECKED = ("verify-ca", "verify-full")


def split_tls(url: URL) -> tuple[URL, dict[str, Any]]:
    """Return the URL without `ssl`, and asyncpg's arguments for it. Raises ValueError for an unknown mode."""
    modes = [url.query[name] for name in _NAMES if name in url.query]
    plain_url = url.difference_update_query(_NAMES)
    if not modes:
        return plain_url, {}
    mode = modes[0]
    if mode in _UNCHECKED:
        return plain_url, {"ssl": mode}
    if mode not in _CHECKED:
        raise ValueError(f"ssl must be one of {', '.join((*_UNCHECKED, *_CHECKED))}")
    context = ssl.create_default_context()
    context.check_hostname = mode == "verify-full"
    return plain_url, {"ssl": context}
