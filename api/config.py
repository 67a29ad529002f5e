"""Settings of the API server, from the environment (docs/settings.md).

Parsed once by `python -m api`; all other code takes the frozen ApiConfig.
"""

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from api.auth.settings import IdentitySettings, is_issuer, parse_identity
from api.auth.sign_in.settings import SignInSettings, parse_sign_in
from api.build_context.url import parse_hosts
from api.cors import parse_origins
from api.http.client_address import Networks, parse_proxies
from api.prices import Prices, parse_prices
from api.ratelimit import counters
from api.store.blobs.backends import check_url
from api.store.blobs.presign import UrlSigner, parse_signer
from api.store.sql.postgres.engine import parse_url
from api.telemetry.settings import TelemetrySettings, parse_telemetry
from api.tls.settings import PodTlsSettings, parse_pod_tls
from crds.installation_limits import InstallationLimits, read_limits
from crds.limits import Plans, parse_plans
from crds.pod_tokens import MIN_TOKEN_KEY_LENGTH, parse_other_keys
from crds.secrets.use import SecretUse, parse_secret_use
from crds.teams.namespaces import DEFAULT_NAMESPACE, parse_namespaces, served
from crds.times import parse_time
from egress.addresses import AddressRules

LOG_LEVELS = ("debug", "info", "warning", "error")
DEFAULT_KEPT_UPLOADS_BYTES = 5 * 1024**3


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
    cors_origins: frozenset[str] = frozenset()
    """Origins of web pages of others that may call the API."""
    """External hosts from which build contexts are fetched; empty: uploads only."""
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


def parse(environ: Mapping[str, str]) -> ApiConfig:
    """Parse the settings. Raises ApiConfigError that names every invalid variable."""
    wrong: list[str] = []
    namespace = environ.get("CREWYARD_NAMESPACE", DEFAULT_NAMESPACE)
    if not namespace or len(namespace) > 63 or not namespace.replace("-", "").isalnum():
        wrong.append("CREWYARD_NAMESPACE: must be the name of a namespace, for example crews")
    namespaces: tuple[str, ...] = ()
    try:
        namespaces = parse_namespaces(environ.get("CREWYARD_NAMESPACES", ""))
    except ValueError as error:
        wrong.append(f"CREWYARD_NAMESPACES: {error}")
    # Stripped, as in the controller: a Secret made from a file ends with a line break.
    token_key = environ.get("CREWYARD_TOKEN_KEY", "").strip()
    if len(token_key) < MIN_TOKEN_KEY_LENGTH:
        wrong.append(
            f"CREWYARD_TOKEN_KEY: needs at least {MIN_TOKEN_KEY_LENGTH} characters, the same for api and "
            "controller (Secret crewyard-tokens, key `key`)"
        )
    other_token_keys: tuple[str, ...] = ()
    try:
        other_token_keys = parse_other_keys(environ.get("CREWYARD_OTHER_TOKEN_KEYS", ""))
    except ValueError as error:
        wrong.append(f"CREWYARD_OTHER_TOKEN_KEYS: {error}")
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
    secret_use = SecretUse.ANY
    try:
        secret_use = parse_secret_use(environ.get("CREWYARD_SECRET_USE", "").strip() or SecretUse.ANY)
    except ValueError as error:
        wrong.append(f"CREWYARD_SECRET_USE: {error}")
    limits = read_limits(environ, wrong)
    kept_least = max(DEFAULT_KEPT_UPLOADS_BYTES, limits.context_bytes)
    public_url = _url(environ, "CREWYARD_PUBLIC_URL", "http://127.0.0.1:8080", wrong)
    port = int(_positive(environ, "CREWYARD_PORT", 8080, wrong))
    config = ApiConfig(
        namespace=namespace,
        namespaces=namespaces,
        public_url=public_url,
        identity=parse_identity(environ, public_url, wrong),
        sign_in=_sign_in(environ, wrong),
        rate_limit_url=_counters(environ, wrong),
        docs_url=_documentation(environ, wrong),
        telemetry=_telemetry(environ, wrong),
        trusted_proxies=_proxies(environ, wrong),
        internal_url=_url(
            environ, "CREWYARD_INTERNAL_URL", "http://crewyard-api.crewyard-system.svc:8080", wrong
        ),
        token_key=token_key,
        other_token_keys=other_token_keys,
        data=Path(environ.get("CREWYARD_DATA", "/var/lib/crewyard")),
        plans=plans,
        net_allow=_destinations(environ, wrong),
        net_deny=_networks(environ, "CREWYARD_NET_DENY", wrong),
        log_level=level,
        port=port,
        pod_tls=parse_pod_tls(environ, port, wrong),
        run_ttl=_positive(environ, "CREWYARD_RUN_TTL", 600.0, wrong),
        record_ttl=_positive(environ, "CREWYARD_RECORD_TTL", 30 * 24 * 3600.0, wrong),
        seal_after=_positive(environ, "CREWYARD_SEAL_AFTER", 300.0, wrong),
        claims_not_before=_timestamp(environ, "CREWYARD_CLAIMS_NOT_BEFORE", wrong),
        upload_ttl=_positive(environ, "CREWYARD_UPLOAD_TTL", 3600.0, wrong),
        prices=prices,
        context_hosts=_hosts(environ, wrong),
        cors_origins=_origins(environ, wrong),
        database_url=_database(environ, wrong),
        blobs_url=_bucket(environ, wrong),
        signer=parse_signer(environ, wrong),
        secret_use=secret_use,
        limits=limits,
        max_builds=int(_positive(environ, "CREWYARD_MAX_BUILDS", 2, wrong)),
        kept_uploads=int(_positive(environ, "CREWYARD_KEPT_UPLOADS", kept_least, wrong)),
    )
    if config.kept_uploads < limits.context_bytes:
        wrong.append(
            f"CREWYARD_KEPT_UPLOADS: must be at least {limits.context_bytes}, the limit context_bytes, "
            "or no upload of that size fits"
        )
    if wrong:
        raise ApiConfigError("wrong settings:\n" + "\n".join(f"- {line}" for line in wrong))
    return config


def _url(environ: Mapping[str, str], name: str, default: str, wrong: list[str]) -> str:
    text = environ.get(name, default).rstrip("/")
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        wrong.append(f"{name}: must be an http:// or https:// URL without query, for example {default}")
    return text


def _documentation(environ: Mapping[str, str], wrong: list[str]) -> str:
    name = "CREWYARD_DOCS_URL"
    return _url(environ, name, "https://docs.example.com", wrong) if environ.get(name) else ""


def _telemetry(environ: Mapping[str, str], wrong: list[str]) -> TelemetrySettings | None:
    names = ("CREWYARD_OTLP_ENDPOINT", "CREWYARD_OTLP_HEADERS", "CREWYARD_OTLP_CONTENT")
    try:
        return parse_telemetry(*(environ.get(name, "").strip() for name in names))
    except ValueError as error:
        wrong.append(str(error))
        return None


def _database(environ: Mapping[str, str], wrong: list[str]) -> str | None:
    text = environ.get("CREWYARD_DATABASE_URL", "").strip()
    if not text:
        return None
    try:
        parse_url(text)
    except ValueError as error:
        wrong.append(f"CREWYARD_DATABASE_URL: {error}")
    return text


def _origins(environ: Mapping[str, str], wrong: list[str]) -> frozenset[str]:
    try:
        return parse_origins(environ.get("CREWYARD_CORS_ORIGINS", ""))
    except ValueError as error:
        wrong.append(f"CREWYARD_CORS_ORIGINS: {error}")
        return frozenset()


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


def _sign_in(environ: Mapping[str, str], wrong: list[str]) -> SignInSettings | None:
    name = "CREWYARD_SIGN_IN"
    try:
        found = parse_sign_in(environ.get(name, ""), environ.get("CREWYARD_SIGN_IN_SECRET", "").strip())
    except ValueError as error:
        wrong.append(f"{name}: {error}")
        return None
    if found is not None and not is_issuer(found.issuer):
        wrong.append(f"{name}: issuer must be an https:// URL equal to the iss claim of its tokens")
    if found is not None and found.issuer == environ.get("CREWYARD_OIDC_ISSUER"):
        wrong.append(
            f"{name}: issuer must be another one than CREWYARD_OIDC_ISSUER, whose tokens are of workflows"
        )
    return found


def _counters(environ: Mapping[str, str], wrong: list[str]) -> str | None:
    text = environ.get("CREWYARD_RATE_LIMIT_URL", "").strip()
    if not text:
        return None
    try:
        counters.check_url(text)
    except ValueError as error:
        wrong.append(f"CREWYARD_RATE_LIMIT_URL: {error}")
    return text


def _destinations(environ: Mapping[str, str], wrong: list[str]) -> tuple[str, ...]:
    texts = _list(environ, "CREWYARD_NET_ALLOW")
    for text in texts:
        try:
            AddressRules.parse([text], [])
        except ValueError:
            wrong.append(
                f"CREWYARD_NET_ALLOW: {text!r} is neither a network nor an address with a port; "
                "write for example 10.0.0.0/8,10.1.2.3:8418,[fd00::7]:20000-30000"
            )
    return texts


def _proxies(environ: Mapping[str, str], wrong: list[str]) -> Networks:
    try:
        return parse_proxies(environ.get("CREWYARD_TRUSTED_PROXIES", ""))
    except ValueError as error:
        wrong.append(f"CREWYARD_TRUSTED_PROXIES: {error}; write networks, for example 10.1.2.0/24,fd00::7")
        return ()


def _networks(environ: Mapping[str, str], name: str, wrong: list[str]) -> tuple[str, ...]:
    networks = _list(environ, name)
    for part in networks:
        try:
            ipaddress.ip_network(part)
        except ValueError:
            wrong.append(f"{name}: {part!r} is not a network; write for example 10.0.0.0/8,fd00::/8")
    return networks


def _list(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in environ.get(name, "").split(",") if part.strip())


def _timestamp(environ: Mapping[str, str], name: str, wrong: list[str]) -> datetime | None:
    text = environ.get(name, "")
    try:
        return parse_time(text) if text else None
    except ValueError:
        wrong.append(f"{name}: must be a time with its zone, for example 2026-11-21T10:00:00Z")
        return None


def _positive(environ: Mapping[str, str], name: str, default: float, wrong: list[str]) -> float:
    try:
        value = float(environ.get(name) or default)
    except ValueError:
        value = 0
    if not 0 < value < 1e12:
        wrong.append(f"{name}: must be a number above zero, for example {default:g}")
    return value
