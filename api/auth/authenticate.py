"""Whose key or token a request carries. Called by `api.routing.middleware`."""

import re
from datetime import datetime
from functools import lru_cache

from api.auth.api_keys import Key, Keyring
from api.auth.principal import Caller
from api.auth.providers import Guard, Tokens
from api.auth.scopes import Grants

MAX_BEARER = 8000
_BEARER = re.compile(rf"[Bb][Ee][Aa][Rr][Ee][Rr] +([\x21-\x7e]{{1,{MAX_BEARER}}})", re.ASCII)


async def authenticate(
    keyring: Keyring, tokens: Tokens, header: str | None, now: datetime, guard: Guard
) -> Caller | None:
    """Who the Authorization header proves, or None for every kind of bad one alike.

    A token, too, is first looked for among the keys, so that each header costs the same there. `guard` is
    called before the apiserver is asked about a token that it never found good, and may raise. Raises what
    the index raises, and the 503 where such a question has no answer.
    """
    found = _BEARER.fullmatch(header.strip()) if header and len(header) <= 2 * MAX_BEARER else None
    text = found[1] if found else ""
    key = await keyring.find(text, now)
    return of_key(key) if key is not None else await tokens.caller(text, now, guard)


@lru_cache(1000)
def of_key(key: Key) -> Caller:
    """The caller with a key that was proved."""
    return Caller(
        key_id=key.key_id,
        grants=Grants.of_key(key.scopes, key.projects),
        plan=key.plan,
        expires_at=key.expires_at,
        kind="key",
        counted_as=key.key_id,
        session=key.key_id,
    )
