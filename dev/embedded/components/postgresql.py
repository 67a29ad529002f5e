"""PostgreSQL for the index of `make up HA=1`, on the bridge address.

PostgreSQL refuses to run as root, and its own user cannot enter the state directory of root: the server
gets a mount namespace where its data directory has a path of its own.
"""

import shutil
from pathlib import Path

from dev import files
from dev.process import command
from dev.process.probe import TcpProbe
from dev.process.program import ProcessSpec
from dev.settings import BRIDGE_ADDRESS, POD_NETWORK, POSTGRESQL_PORT, Settings

USER = "crewyard"
_SYSTEM_USER = "postgres"
_PROGRAMS = Path("/usr/lib/postgresql/15/bin")
_INSIDE = Path("/mnt")
_SCRIPT = 'mount --bind "$0" /mnt && exec setpriv --reuid=postgres --regid=postgres --clear-groups "$@"'


def _in_namespace(directory: Path, *argv: str) -> tuple[str, ...]:
    return ("unshare", "--mount", "sh", "-c", _SCRIPT, str(directory), *argv)


def directory(settings: Settings) -> Path:
    """Return the directory that holds the server's data."""
    return settings.data / "replicas" / "postgresql"


def ensure(settings: Settings, password: str) -> None:
    """Create the cluster of databases if there is none. Raises CommandFailed."""
    place = directory(settings)
    if (place / "data" / "PG_VERSION").exists():
        return
    shutil.rmtree(place, ignore_errors=True)
    secret = place / "password"
    files.write(secret, password, files.PRIVATE_MODE)
    for path in (place, secret):
        shutil.chown(path, _SYSTEM_USER, _SYSTEM_USER)
    command.read_output(
        _in_namespace(
            place,
            str(_PROGRAMS / "initdb"),
            f"--pgdata={_INSIDE / 'data'}",
            f"--username={USER}",
            f"--pwfile={_INSIDE / 'password'}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
        ),
        seconds=120,
    )
    secret.unlink()
    with (place / "data" / "pg_hba.conf").open("a") as rules:
        rules.write(f"host all {USER} {POD_NETWORK} scram-sha-256\n")


def process_spec(settings: Settings) -> ProcessSpec:
    """Return the process that `up` starts."""
    values = {
        "listen_addresses": BRIDGE_ADDRESS,
        "port": POSTGRESQL_PORT,
        "unix_socket_directories": "",
        "max_connections": 200,
        "shared_buffers": "64MB",
    }
    argv = [str(_PROGRAMS / "postgres"), "-D", str(_INSIDE / "data")]
    argv += [part for name, value in values.items() for part in ("-c", f"{name}={value}")]
    unshare, *rest = _in_namespace(directory(settings), *argv)
    return ProcessSpec(
        name="postgresql",
        argv=(shutil.which(unshare) or f"/usr/bin/{unshare}", *rest),
        cwd=Path("/"),
        probe=TcpProbe(BRIDGE_ADDRESS, POSTGRESQL_PORT),
    )


def url(password: str) -> str:
    """Return the URL of the database for the API server."""
    return f"postgresql+asyncpg://{USER}:{password}@{BRIDGE_ADDRESS}:{POSTGRESQL_PORT}/postgres"
