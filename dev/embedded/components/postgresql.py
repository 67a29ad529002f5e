"""PostgreSQL for the index of `make up HA=1`, on the bridge address.

PostgreSQL refuses to run as root, and its own user cannot enter the state directory of root: the server
gets a mount namespace where its data directory has a path of its own.
"""

import shutil
from pathlib import Path

from dev import files, packages
from dev.process import command
from dev.process.probe import TcpProbe
from dev.process.program import ProcessSpec
from dev.settings import BRIDGE_ADDRESS, POD_NETWORK, POSTGRESQL_PORT, Settings

USER = "crewyard"
_SYSTEM_USER = "postgres"
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
    fresh, data, secret = place / "data.new", place / "data", place / "password"
    # With the file of the password, the initdb of an earlier version was killed: it wrote into `data` itself.
    if (data / "PG_VERSION").exists() and not secret.exists():
        return
    shutil.rmtree(place, ignore_errors=True)
    files.write(secret, password, files.PRIVATE_MODE)
    for path in (place, secret):
        shutil.chown(path, _SYSTEM_USER, _SYSTEM_USER)
    command.read_output(
        _in_namespace(
            place,
            str(packages.postgresql_programs() / "initdb"),
            f"--pgdata={_INSIDE / fresh.name}",
            f"--username={USER}",
            f"--pwfile={_INSIDE / 'password'}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
        ),
        seconds=120,
    )
    with (fresh / "pg_hba.conf").open("a") as rules:
        rules.write(f"host all {USER} {POD_NETWORK} scram-sha-256\n")
    secret.unlink()
    fresh.rename(data)


def process_spec(settings: Settings) -> ProcessSpec:
    """Return the process that `up` starts."""
    values = {
        "listen_addresses": BRIDGE_ADDRESS,
        "port": POSTGRESQL_PORT,
        "unix_socket_directories": "",
        "max_connections": 200,
        "shared_buffers": "64MB",
    }
    made_by = directory(settings) / "data" / "PG_VERSION"
    version = made_by.read_text().strip() if made_by.exists() else "*"
    argv = [str(packages.postgresql_programs(version) / "postgres"), "-D", str(_INSIDE / "data")]
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
