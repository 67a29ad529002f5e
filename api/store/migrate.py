"""Brings the index's file to the present schema. Called by `Store.open`, before any connection of ours."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

SCRIPTS = Path(__file__).parent / "migrations"


def migrate(path: Path, revision: str = "head") -> None:
    """Runs the migrations that `path` lacks, each in a transaction. Blocks; runs in a thread."""
    settings = Config()
    settings.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    try:
        with engine.begin() as connection:
            settings.attributes["connection"] = connection
            command.upgrade(settings, revision)
    finally:
        engine.dispose()
