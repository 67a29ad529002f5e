"""Settings of the API server, from the environment (docs/settings.md).

Parsed once by `python -m api`; all other code takes the frozen ApiConfig.
"""

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from api.auth.settings import IdentitySettings, parse_identity
from api.auth.sign_in.settings import SignInSettings, parse_sign_in
from api.build_context.url import parse_hosts
from api.cors import parse_origins
from api.http.client_address import Networks, parse_proxies
from api.prices import Prices, parse_prices
from api.ratelimit import counters
from api.store.blobs.backends import check_url
from api.store.blobs.presign import MAX_EXPIRY_SECONDS, UrlSigner, parse_signer
from api.store.sql.postgres.engine import parse_url
from api.telemetry.settings import TelemetrySettings, parse_telemetry
from crds.installation_limits import InstallationLimits, read_limits
from crds.limits import Plans, parse_plans
from crds.pod_tokens import MIN_TOKEN_KEY_LENGTH, parse_other_keys
from crds.secrets.use import SecretUse, parse_secret_use
from crds.teams.namespaces import DEFAULT_NAMESPACE, parse_namespaces, served
from crds.times import parse_time
from egress.addresses import AddressRules
from internal_tls.settings import PodTlsSettings, parse_pod_tls

T = TypeVar("T")
LOG_LEVELS = ("debug", "info", "warning", "error")
DEFAULT_KEPT_UPLOADS_BYTES = 5 * 1024**3
LONGEST_SECONDS = 1e10
"""Some 300 years: dates begin with the year 1."""


class ApiConfigError(Exception):
    """Invalid environment; the message names every invalid variable and a valid value."""


@dataclass(frozen=True)
class ApiConfig:
    """Settings of an installation. URLs have no trailing slash; durations are in seconds."""

    namespace: str
    """The installation's own namespace: objects are in it, and its index is stored under this name."""
    public_url: str
    internal_url: str
    token_key: str = field(repr=False)
    data: Path
    plans: Plans = field(default_factory=Plans)
    net_allow: tuple[str, ...] = ()
    net_deny: tuple[str, ...] = ()
    log_level: str = "info"
    port: int = 8080
    pod_tls: PodTlsSettings = field(default_factory=PodTlsSettings)
    """The port on which pods reach the API server by TLS."""
    run_ttl: float = 600.0
    """Time for which a finished Run object stays in the cluster."""
    record_ttl: float = 30 * 24 * 3600.0
    """Default retention of run records with events and artifacts; a Project can override it."""
    seal_after: float = 300.0
    """Delay from the end of a run until its events are sealed into one compressed blob."""
    claims_not_before: datetime | None = None
    """Pods created earlier are denied claims; set it after a restore of the index from a backup."""
    upload_ttl: float = 3600.0
    """Lifetime of an upload URL."""
    secret_use: SecretUse = SecretUse.ANY
    """Whether a Secret must say which Projects may use it."""
    limits: InstallationLimits = field(default_factory=InstallationLimits)
    max_builds: int = 2
    """Concurrent builds of the installation; the controller keeps to it, the API tells it."""
    kept_uploads: int = DEFAULT_KEPT_UPLOADS_BYTES
    """Total bytes of a Project's uploads; each upload is kept for about a day."""
    database_url: str | None = field(default=None, repr=False)
    """PostgreSQL URL with its password; None: SQLite in `data`."""
    blobs_url: str | None = None
    """Bucket URL; None: files in `data`."""
    context_hosts: str = ""
    """External hosts from which build contexts are fetched; empty: uploads only."""
    cors_origins: frozenset[str] = frozenset()
    """Origins of web pages of others that may call the API."""
    signer: UrlSigner | None = None
    """Signs bucket URLs for direct client access; None: the API server proxies all bytes."""
    prices: Prices | None = None
    """Prices for the cost column of usage; None: no cost is reported."""
    identity: IdentitySettings = field(default_factory=IdentitySettings)
    """Token issuers accepted besides API keys."""
    sign_in: SignInSettings | None = None
    """The OpenID provider that signs users in to the console; None: API keys only."""
    rate_limit_url: str | None = field(default=None, repr=False)
    """Redis or Valkey URL with its password, shared by replicas; None: each replica counts on its own."""
    trusted_proxies: Networks = ()
    """Networks of the proxies whose X-Forwarded-For is believed."""
    telemetry: TelemetrySettings | None = None
    """The collector that gets the spans of ended runs and builds; None: they are not exported."""
    namespaces: tuple[str, ...] = ()
    """More namespaces, of teams."""
    docs_url: str = ""
    """Base URL of the documentation site that errors link to; empty: no links."""
    other_token_keys: tuple[str, ...] = field(default=(), repr=False)
    """Keys whose tokens are valid too: the earlier or the next `token_key`."""

    @property
    def token_keys(self) -> tuple[str, ...]:
        """The keys whose tokens are valid; the first one signs."""
        return (self.token_key, *self.other_token_keys)

    @property
    def served_namespaces(self) -> tuple[str, ...]:
        """The namespaces that the installation serves, its own first."""
        return served(self.namespace, self.namespaces)

    def limits_of(self, plan: str) -> InstallationLimits:
        """Return the limits of the projects with a plan."""
        return self.plans.limits_of(plan, self.limits)


def parse(environ: Mapping[str, str]) -> ApiConfig:
    """Parse the settings. Raises ApiConfigError that names every invalid variable."""
    problems: list[str] = []

    def read(name: str, convert: Callable[[str], T], fallback: T) -> T:
        text = environ.get(name, "").strip()
        try:
            return convert(text) if text else fallback
        except ValueError as error:
            problems.append(f"{name}: {error}")
            return fallback

    limits = read_limits(environ, problems)
    kept_least = max(DEFAULT_KEPT_UPLOADS_BYTES, limits.context_bytes)
    public_url = read("CREWYARD_PUBLIC_URL", _url, "http://127.0.0.1:8080")
    port = read("CREWYARD_PORT", _whole_number, 8080)
    client_secret = environ.get("CREWYARD_SIGN_IN_SECRET", "").strip()
    signer = parse_signer(environ, problems)
    upload_ttl = read("CREWYARD_UPLOAD_TTL", _seconds, 3600.0)
    config = ApiConfig(
        namespace=read("CREWYARD_NAMESPACE", _namespace, DEFAULT_NAMESPACE),
        namespaces=read("CREWYARD_NAMESPACES", parse_namespaces, ()),
        public_url=public_url,
        identity=parse_identity(environ, public_url, problems),
        sign_in=read("CREWYARD_SIGN_IN", lambda text: parse_sign_in(text, client_secret), None),
        rate_limit_url=read("CREWYARD_RATE_LIMIT_URL", _checked(counters.check_url), None),
        docs_url=read("CREWYARD_DOCS_URL", _url, ""),
        telemetry=_telemetry(environ, problems),
        trusted_proxies=read("CREWYARD_TRUSTED_PROXIES", parse_proxies, ()),
        internal_url=read("CREWYARD_INTERNAL_URL", _url, "http://crewyard-api.crewyard-system.svc:8080"),
        # Stripped, as in the controller: a Secret made from a file ends with a line break.
        token_key=environ.get("CREWYARD_TOKEN_KEY", "").strip(),
        other_token_keys=read("CREWYARD_OTHER_TOKEN_KEYS", parse_other_keys, ()),
        data=read("CREWYARD_DATA", Path, Path("/var/lib/crewyard")),
        plans=read("CREWYARD_PLANS", parse_plans, Plans()),
        net_allow=read("CREWYARD_NET_ALLOW", _destinations, ()),
        net_deny=read("CREWYARD_NET_DENY", _networks, ()),
        log_level=read("CREWYARD_LOG_LEVEL", _level, "info"),
        port=port,
        pod_tls=parse_pod_tls(environ, port, problems),
        run_ttl=read("CREWYARD_RUN_TTL", _seconds, 600.0),
        record_ttl=read("CREWYARD_RECORD_TTL", _seconds, 30 * 24 * 3600.0),
        seal_after=read("CREWYARD_SEAL_AFTER", _seconds, 300.0),
        claims_not_before=read("CREWYARD_CLAIMS_NOT_BEFORE", _time, None),
        upload_ttl=upload_ttl if signer is None else min(upload_ttl, MAX_EXPIRY_SECONDS),
        prices=read("CREWYARD_PRICES", parse_prices, None),
        context_hosts=read("CREWYARD_CONTEXT_HOSTS", _checked(parse_hosts), ""),
        cors_origins=read("CREWYARD_CORS_ORIGINS", parse_origins, frozenset()),
        database_url=read("CREWYARD_DATABASE_URL", _checked(parse_url), None),
        blobs_url=read("CREWYARD_BLOBS_URL", _bucket, None),
        signer=signer,
        secret_use=read("CREWYARD_SECRET_USE", parse_secret_use, SecretUse.ANY),
        limits=limits,
        max_builds=read("CREWYARD_MAX_BUILDS", _whole_number, 2),
        kept_uploads=read("CREWYARD_KEPT_UPLOADS", _whole_number, kept_least),
    )
    problems += _contradictions(config)
    if problems:
        raise ApiConfigError("wrong settings:\n" + "\n".join(f"- {line}" for line in problems))
    return config


def _contradictions(config: ApiConfig) -> Iterator[str]:
    """Yield what is wrong although each variable alone is valid."""
    if len(config.token_key) < MIN_TOKEN_KEY_LENGTH:
        yield (
            f"CREWYARD_TOKEN_KEY: needs at least {MIN_TOKEN_KEY_LENGTH} characters, the same for api and "
            "controller (Secret crewyard-tokens, key `key`)"
        )
    if config.sign_in is not None and config.sign_in.issuer == config.identity.oidc_issuer:
        yield (
            "CREWYARD_SIGN_IN: issuer must be another one than CREWYARD_OIDC_ISSUER, whose tokens are of "
            "workflows"
        )
    if config.kept_uploads < config.limits.context_bytes:
        yield (
            f"CREWYARD_KEPT_UPLOADS: must be at least {config.limits.context_bytes}, the limit "
            "context_bytes, or no upload of that size fits"
        )


def _telemetry(environ: Mapping[str, str], problems: list[str]) -> TelemetrySettings | None:
    names = ("CREWYARD_OTLP_ENDPOINT", "CREWYARD_OTLP_HEADERS", "CREWYARD_OTLP_CONTENT")
    try:
        return parse_telemetry(*(environ.get(name, "").strip() for name in names))
    except ValueError as error:
        problems.append(str(error))
        return None


def _checked(check: Callable[[str], object]) -> Callable[[str], str]:
    """Return a parser that returns the text if `check` accepts it."""

    def parse(text: str) -> str:
        check(text)
        return text

    return parse


def _bucket(text: str) -> str:
    return _checked(check_url)(text.rstrip("/"))


def _namespace(text: str) -> str:
    if len(text) > 63 or not text.replace("-", "").isalnum():
        raise ValueError("must be the name of a namespace, for example crews")
    return text


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(
            "must be an http:// or https:// URL without query, for example https://crews.example.com"
        )
    return text.rstrip("/")


def _level(text: str) -> str:
    if text.lower() not in LOG_LEVELS:
        raise ValueError(f"must be one of {', '.join(LOG_LEVELS)}")
    return text.lower()


def _destinations(text: str) -> tuple[str, ...]:
    destinations = _list(text)
    for each in destinations:
        try:
            AddressRules.parse([each], [])
        except ValueError as error:
            raise ValueError(
                f"{each!r} is neither a network nor an address with a port; "
                "write for example 10.0.0.0/8,10.1.2.3:8418,[fd00::7]:20000-30000"
            ) from error
    return destinations


def _networks(text: str) -> tuple[str, ...]:
    networks = _list(text)
    for each in networks:
        try:
            ipaddress.ip_network(each)
        except ValueError as error:
            raise ValueError(f"{each!r} is not a network; write for example 10.0.0.0/8,fd00::/8") from error
    return networks


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _time(text: str) -> datetime:
    try:
        return parse_time(text)
    except ValueError as error:
        raise ValueError("must be a time with its zone, for example 2026-11-21T10:00:00Z") from error


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < 1e12:
        raise ValueError(f"must be a number above zero, not {text[:40]!r}")
    return value


def _seconds(text: str) -> float:
    return min(_positive(text), LONGEST_SECONDS)


def _whole_number(text: str) -> int:
    return int(_positive(text))
