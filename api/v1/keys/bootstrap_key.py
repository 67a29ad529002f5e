"""`python -m api key [NAME]`: creates an admin key, for users who can exec into the pod of the service.

The first key of an installation must come from a path that needs no key; users who can exec into the pod
can read the store anyway. The key is written to standard output only, never to a log or a Secret; the
store has its hash. Each call creates another key; revoke lost ones through the API. Called by
`api.__main__`.
"""

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from api.store.backend import INDEX
from api.store.errors import StoreUnavailable
from api.store.index.api_keys import ApiKeys
from api.store.sql.database import Database
from api.store.sql.notifier import Notifier
from api.store.sql.postgres.database import PostgresDatabase
from api.store.sql.sqlite import SqliteDatabase
from api.v1.keys import view as translate
from crds import api_keys
from crds.api_keys import ApiKey

MAX_NAME_LENGTH = 100


def _database(data: Path, database_url: str | None) -> Database:
    """Open the index next to the running service. Raises StoreUnavailable if it does not exist."""
    if database_url is not None:
        return PostgresDatabase(database_url)
    if not (data / INDEX).is_file():
        raise StoreUnavailable(
            f"{data / INDEX} does not exist: start the service once, or check CREWYARD_DATA"
        )
    return SqliteDatabase(data / INDEX)


BOOTSTRAP = "bootstrap"
"""The creator of a key that the operator made without the API."""


async def create_key(
    data: Path, namespace: str, database_url: str | None, name: str, now: datetime
) -> ApiKey:
    """Create and store a key with all scopes. Raises StoreUnavailable."""
    database = _database(data, database_url)
    try:
        new_key = api_keys.generate()
        body = {"name": name, "scopes": ["admin"], "plan": "enterprise"}
        await ApiKeys(database, namespace, Notifier()).put(translate.row(new_key, body, BOOTSTRAP, now))
        return new_key
    finally:
        await database.close()


def main(data: Path, namespace: str, database_url: str | None, arguments: Sequence[str]) -> int:
    """Run the command; return its exit code. The key goes to stdout, everything else to stderr."""
    name = arguments[0] if arguments else "first admin key"
    if len(arguments) > 1 or name.startswith("-") or not 0 < len(name) <= MAX_NAME_LENGTH:
        print(
            f"usage: python3 -m api key [NAME], with a name of at most {MAX_NAME_LENGTH} characters",
            file=sys.stderr,
        )
        return 2
    try:
        new_key = asyncio.run(create_key(data, namespace, database_url, name, datetime.now(UTC)))
    except (StoreUnavailable, SQLAlchemyError) as error:
        print(f"no key was created: {error}", file=sys.stderr)
        return 1
    print(new_key.text)
    note = f"A key with all scopes, shown only once. DELETE /v1/api-keys/{new_key.key_id} revokes it."
    print(note, file=sys.stderr)
    return 0
