"""Whom a connection to PostgreSQL trusts, as `?ssl=` of its URL says it. Called by all that connect.

The driver by itself looks for authorities in a file of the user's home, which a pod does not have; here they
are the system's, with those of SSL_CERT_FILE. And only SQLAlchemy knows `ssl` in a URL: asyncpg would send it
to the server as a setting.
"""

import ssl
from typing import Any

from sqlalchemy import URL

_NAMES = ("ssl", "sslmode")
_UNCHECKED = ("disable", "allow", "prefer", "require")
_CHECKED = ("verify-ca", "verify-full")


def parted(url: URL) -> tuple[URL, dict[str, Any]]:
    """The URL without that, and asyncpg's arguments in its place. Raises ValueError for an unknown mode."""
    given = [url.query[name] for name in _NAMES if name in url.query]
    rest = url.difference_update_query(_NAMES)
    if not given:
        return rest, {}
    mode = given[0]
    if mode in _UNCHECKED:
        return rest, {"ssl": mode}
    if mode not in _CHECKED:
        raise ValueError(f"ssl must be one of {', '.join((*_UNCHECKED, *_CHECKED))}")
    trusting = ssl.create_default_context()
    trusting.check_hostname = mode == "verify-full"
    return rest, {"ssl": trusting}
