"""`python -m api key [NAME]`: a new admin key, for whoever may run a command in the service's pod.

An installation's first key has to come from somewhere that needs none, and who may enter the pod can read the
store anyway. The key goes to standard output alone: it is in no log and in no Secret, and only its hash is
stored. Each call makes another key; lost ones are revoked through the API. Called by `api.__main__`.
"""

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from api.store.backend import INDEX
from api.store.errors import StoreUnavailable
from api.store.index.api_keys import Keys
from api.store.sql.database import Database
from api.store.sql.notifier import Signals
from api.store.sql.postgres.database import Postgres
from api.store.sql.sqlite import Sqlite
from api.v1.keys import view as translate
from crds import api_keys
from crds.api_keys import ApiKey

LONGEST = 100


def _database(data: Path, database_url: str | None) -> Database:
    """The index beside the service that serves it. Raises StoreUnavailable where it never was served."""
    if database_url is not None:
        return Postgres(database_url)
    if not (data / INDEX).is_file():
        raise StoreUnavailable(
            f"{data / INDEX} is not there: start the service once, or look at CREWYARD_DATA"
        )
    return Sqlite(data / INDEX)


async def draw(data: Path, namespace: str, database_url: str | None, name: str, now: datetime) -> ApiKey:
    """A new key with all rights, stored. Raises StoreUnavailable."""
    database = _database(data, database_url)
    try:
        drawn = api_keys.draw()
        body = {"name": name, "scopes": ["admin"], "plan": "enterprise"}
        await Keys(database, namespace, Signals()).put(translate.row(drawn, body, now))
        return drawn
    finally:
        await database.close()


def main(data: Path, namespace: str, database_url: str | None, arguments: Sequence[str]) -> int:
    """The exit code; the key is on standard output, everything else on standard error."""
    name = arguments[0] if arguments else "first admin key"
    if len(arguments) > 1 or name.startswith("-") or not 0 < len(name) <= LONGEST:
        print(
            f"usage: python3 -m api key [NAME], with a name of at most {LONGEST} characters", file=sys.stderr
        )
        return 2
    try:
        drawn = asyncio.run(draw(data, namespace, database_url, name, datetime.now(UTC)))
    except (StoreUnavailable, SQLAlchemyError) as error:
        print(f"no key was made: {error}", file=sys.stderr)
        return 1
    print(drawn.text)
    said = f"A key with all rights, shown this once. DELETE /v1/api-keys/{drawn.key_id} revokes it."
    print(said, file=sys.stderr)
    return 0
