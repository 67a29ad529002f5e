"""Authentication of the Authorization header. Called by `api.routing.middleware`."""

import re
from datetime import datetime
from functools import lru_cache

from api.auth.api_keys import Keyring, StoredKey
from api.auth.principal import Caller
from api.auth.providers import Guard, TokenProviders
from api.auth.scopes import Grants

MAX_BEARER_LENGTH = 8000
_BEARER = re.compile(rf"[Bb][Ee][Aa][Rr][Ee][Rr] +([\x21-\x7e]{{1,{MAX_BEARER_LENGTH}}})", re.ASCII)


async def authenticate(
    keyring: Keyring, tokens: TokenProviders, header: str | None, now: datetime, guard: Guard
) -> Caller | None:
    """Return the caller of an Authorization header; None for every kind of invalid header.

    Looks up tokens among the keys too, so each header costs the same lookup. Calls `guard`, which may
    raise, before the apiserver reviews a token that it never accepted. Raises the errors of the index,
    and a 503 if the token issuer or the apiserver is unavailable.
    """
    match = _BEARER.fullmatch(header.strip()) if header and len(header) <= 2 * MAX_BEARER_LENGTH else None
    text = match[1] if match else ""
    key = await keyring.find(text, now)
    return caller_of_key(key) if key is not None else await tokens.caller(text, now, guard)


@lru_cache(1000)
def caller_of_key(key: StoredKey) -> Caller:
    """Return the caller of a verified key."""
    return Caller(
        key_id=key.key_id,
        grants=Grants.of_key(key.scopes, key.projects),
        plan=key.plan,
        expires_at=key.expires_at,
        kind="key",
        rate_limit_key=key.key_id,
        credential_id=key.key_id,
    )
