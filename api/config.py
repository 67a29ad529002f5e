"""The facade's settings, from the environment (docs/settings.md).

Read once by `python -m api`; everything else takes the frozen Config.
"""

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from api.auth.settings import Identity, parse_identity
from api.build_context.url import parse_hosts
from api.ratelimit import counters
from api.store.blobs.backends import check_url
from api.store.blobs.presign import Signer, parse_signer
from api.store.sql.postgres.engine import address
from api.v1.usage.prices import Prices, parse_prices
from crds.installation_limits import Limits, read_limits
from crds.limits import Plans, parse_plans
from crds.times import parse_time

LOG_LEVELS = ("debug", "info", "warning", "error")
MIN_TOKEN_KEY = 16
KEPT_UPLOADS = 5 * 1024**3


class ConfigError(Exception):
    """The environment is wrong; the text names every wrong variable and what to set."""


@dataclass(frozen=True)
class Config:
    """What an installation sets. Addresses carry no trailing slash; durations are in seconds."""

    namespace: str
    public_url: str
    internal_url: str
    token_key: str = field(repr=False)
    data: Path
    plans: Plans = field(default_factory=Plans)
    net_allow: tuple[str, ...] = ()
    net_deny: tuple[str, ...] = ()
    log_level: str = "info"
    port: int = 8080
    run_ttl: float = 600.0
    """How long an ended Run object stays in the cluster."""
    record_ttl: float = 30 * 24 * 3600.0
    """How long records of runs are kept, with events and artifacts, where their Project does not say."""
    seal_after: float = 300.0
    """How long after a run's end its events become one compressed blob."""
    claims_not_before: datetime | None = None
    """Pods made before are given no run: the index was restored from a backup then."""
    upload_ttl: float = 3600.0
    """How long an upload's address holds."""
    limits: Limits = field(default_factory=Limits)
    kept_uploads: int = KEPT_UPLOADS
    """Bytes of a Project's uploads together; each stays about a day."""
    database_url: str | None = field(default=None, repr=False)
    """PostgreSQL with its password; None: SQLite in `data`."""
    blobs_url: str | None = None
    """A bucket; None: files in `data`."""
    context_hosts: str = ""
    """Other people's servers that a build context may be fetched from; none: only uploads."""
    signer: Signer | None = None
    """Signs addresses at which clients reach the bucket themselves; None: all goes through the facade."""
    prices: Prices | None = None
    """What use costs; None: nothing is said of cost."""
    identity: Identity = field(default_factory=Identity)
    """Whose tokens are taken besides keys."""
    rate_limit_url: str | None = field(default=None, repr=False)
    """A Redis or Valkey with its password, in which replicas count together; None: each counts by itself."""
    docs_url: str = ""
    """Where the documentation's site is served, to which errors link; empty: they do not."""


def parse(environ: Mapping[str, str]) -> Config:
    """The settings. Raises ConfigError naming every wrong variable at once."""
    wrong: list[str] = []
    namespace = environ.get("CREWYARD_NAMESPACE", "crews")
    if not namespace or len(namespace) > 63 or not namespace.replace("-", "").isalnum():
        wrong.append("CREWYARD_NAMESPACE: must be the name of a namespace, for example crews")
    # As the controller reads it: a Secret made from a file ends with a line break.
    token_key = environ.get("CREWYARD_TOKEN_KEY", "").strip()
    if len(token_key) < MIN_TOKEN_KEY:
        wrong.append(
            f"CREWYARD_TOKEN_KEY: needs at least {MIN_TOKEN_KEY} characters, the same for api and controller "
            "(Secret crewyard-tokens, key `key`)"
        )
    level = environ.get("CREWYARD_LOG_LEVEL", "info").lower()
    if level not in LOG_LEVELS:
        wrong.append(f"CREWYARD_LOG_LEVEL: must be one of {', '.join(LOG_LEVELS)}")
    plans = Plans()
    try:
        plans = parse_plans(environ.get("CREWYARD_PLANS", ""))
    except (json.JSONDecodeError, AttributeError):
        wrong.append("CREWYARD_PLANS: must be a JSON object of plans")
    except ValueError as error:
        wrong.append(str(error))
    prices = None
    try:
        prices = parse_prices(environ.get("CREWYARD_PRICES", ""))
    except ValueError as error:
        wrong.append(str(error))
    limits = read_limits(environ, wrong)
    kept_least = max(KEPT_UPLOADS, limits.context_bytes)
    public_url = _address(environ, "CREWYARD_PUBLIC_URL", "http://127.0.0.1:8080", wrong)
    config = Config(
        namespace=namespace,
        public_url=public_url,
        identity=parse_identity(environ, public_url, wrong),
        rate_limit_url=_counters(environ, wrong),
        docs_url=_documentation(environ, wrong),
        internal_url=_address(
            environ, "CREWYARD_INTERNAL_URL", "http://crewyard-api.crewyard-system.svc:8080", wrong
        ),
        token_key=token_key,
        data=Path(environ.get("CREWYARD_DATA", "/var/lib/crewyard")),
        plans=plans,
        net_allow=_networks(environ, "CREWYARD_NET_ALLOW", wrong),
        net_deny=_networks(environ, "CREWYARD_NET_DENY", wrong),
        log_level=level,
        port=int(_positive(environ, "CREWYARD_PORT", 8080, wrong)),
        run_ttl=_positive(environ, "CREWYARD_RUN_TTL", 600.0, wrong),
        record_ttl=_positive(environ, "CREWYARD_RECORD_TTL", 30 * 24 * 3600.0, wrong),
        seal_after=_positive(environ, "CREWYARD_SEAL_AFTER", 300.0, wrong),
        claims_not_before=_moment(environ, "CREWYARD_CLAIMS_NOT_BEFORE", wrong),
        upload_ttl=_positive(environ, "CREWYARD_UPLOAD_TTL", 3600.0, wrong),
        prices=prices,
        context_hosts=_hosts(environ, wrong),
        database_url=_database(environ, wrong),
        blobs_url=_bucket(environ, wrong),
        signer=parse_signer(environ, wrong),
        limits=limits,
        kept_uploads=int(_positive(environ, "CREWYARD_KEPT_UPLOADS", kept_least, wrong)),
    )
    if config.kept_uploads < limits.context_bytes:
        wrong.append(
            f"CREWYARD_KEPT_UPLOADS: must be at least {limits.context_bytes}, the limit context_bytes, "
            "or none of that size fits"
        )
    if wrong:
        raise ConfigError("wrong settings:\n" + "\n".join(f"- {line}" for line in wrong))
    return config


def _address(environ: Mapping[str, str], name: str, default: str, wrong: list[str]) -> str:
    text = environ.get(name, default).rstrip("/")
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        wrong.append(f"{name}: must be an http:// or https:// address without query, for example {default}")
    return text


def _documentation(environ: Mapping[str, str], wrong: list[str]) -> str:
    name = "CREWYARD_DOCS_URL"
    return _address(environ, name, "https://docs.example.com", wrong) if environ.get(name) else ""


def _database(environ: Mapping[str, str], wrong: list[str]) -> str | None:
    text = environ.get("CREWYARD_DATABASE_URL", "").strip()
    if not text:
        return None
    try:
        address(text)
    except ValueError as error:
        wrong.append(f"CREWYARD_DATABASE_URL: {error}")
    return text


def _hosts(environ: Mapping[str, str], wrong: list[str]) -> str:
    text = environ.get("CREWYARD_CONTEXT_HOSTS", "")
    try:
        parse_hosts(text)
    except ValueError as error:
        wrong.append(f"CREWYARD_CONTEXT_HOSTS: {error}")
    return text


def _bucket(environ: Mapping[str, str], wrong: list[str]) -> str | None:
    text = environ.get("CREWYARD_BLOBS_URL", "").rstrip("/")
    if not text:
        return None
    try:
        check_url(text)
    except ValueError as error:
        wrong.append(f"CREWYARD_BLOBS_URL: {error}")
    return text


def _counters(environ: Mapping[str, str], wrong: list[str]) -> str | None:
    text = environ.get("CREWYARD_RATE_LIMIT_URL", "").strip()
    if not text:
        return None
    try:
        counters.check_url(text)
    except ValueError as error:
        wrong.append(f"CREWYARD_RATE_LIMIT_URL: {error}")
    return text


def _networks(environ: Mapping[str, str], name: str, wrong: list[str]) -> tuple[str, ...]:
    found = tuple(part.strip() for part in environ.get(name, "").split(",") if part.strip())
    for part in found:
        try:
            ipaddress.ip_network(part)
        except ValueError:
            wrong.append(f"{name}: {part!r} is no network; write for example 10.0.0.0/8,fd00::/8")
    return found


def _moment(environ: Mapping[str, str], name: str, wrong: list[str]) -> datetime | None:
    text = environ.get(name, "")
    try:
        return parse_time(text) if text else None
    except ValueError:
        wrong.append(f"{name}: must be a moment with its zone, for example 2026-11-21T10:00:00Z")
        return None


def _positive(environ: Mapping[str, str], name: str, default: float, wrong: list[str]) -> float:
    try:
        value = float(environ.get(name) or default)
    except ValueError:
        value = 0
    if not 0 < value < 1e12:
        wrong.append(f"{name}: must be a number above zero, for example {default:g}")
    return value
