"""Controller settings, read once from the environment (docs/settings.md).

Called by `controller.__main__`. All other modules take the frozen ControllerConfig as an argument.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from securesystemslib.signer import SSlibKey

from controller.attestation.signing import (
    SigningKeys,
    parse_private_key,
    parse_public_keys,
    signing_keys,
)
from controller.pods.api_address import (
    ApiAddress,
    api_address_problem,
    parse_tls_url,
)
from controller.pods.api_address import (
    parse_authorities as parse_api_authorities,
)
from controller.pods.authority_file import AuthorityFile, parse_authority_file
from controller.pods.egress import PodEgress, parse_authorities, parse_proxies
from controller.pods.placement import NodePlacements, parse_placements
from controller.pods.run_egress import EgressTarget, parse_targets
from crds.installation_limits import InstallationLimits, read_limits
from crds.limits import Plans, parse_plans
from crds.objects import Project
from crds.pod_tokens import MIN_TOKEN_KEY_LENGTH, parse_other_keys
from crds.secrets.use import SecretUse, parse_secret_use
from crds.teams.namespaces import DEFAULT_NAMESPACE, parse_namespaces, served
from egress.addresses import AddressRules
from internal_tls.settings import PodTlsSettings, parse_controller_tls, parse_flag
from plan.python import VERSION

T = TypeVar("T")
LOG_LEVELS = ("debug", "info", "warning", "error")
MAX_POD_TTL_SECONDS = 30 * 86400


class ConfigError(Exception):
    """Invalid settings; the message names every invalid variable, one per line."""


@dataclass(frozen=True)
class Timing:
    """Periods and limits in seconds. Tests shorten them; an installation may set some of them."""

    resync: float = 15.0
    poll: int = 60
    poll_backoff_max: float = 600.0
    start_timeout: int = InstallationLimits.start_seconds
    unschedulable: int = InstallationLimits.unschedulable_seconds
    image_pull: int = 90
    build_timeout: int = InstallationLimits.build_seconds
    build_retry: float = 5.0
    build_pod_ttl: int = 120
    """Finished build pods cost the node until then; the API server copies Kaniko's log meanwhile."""
    run_pod_ttl: int = 120
    """The same of run pods, whose logs and artifacts the API server has when they end."""
    node_lost_after: int = 60
    prune_settle: float = 30.0
    """From the announcement of an image deletion; longer than a resync, so every controller knows of it."""
    git_timeout: float = 60.0
    coalescing_window: float = 10.0
    """Minimum time between two builds of a project that commits start."""

    @classmethod
    def from_limits(cls, limits: InstallationLimits) -> "Timing":
        """Return the timing of an installation with these limits."""
        return cls(
            start_timeout=limits.start_seconds,
            unschedulable=limits.unschedulable_seconds,
            build_timeout=limits.build_seconds,
        )


@dataclass(frozen=True)
class ControllerConfig:
    """Settings of one controller."""

    namespace: str
    """The namespace whose objects these settings are for."""
    internal_url: str
    """URL of the API server for pods, without TLS."""
    token_key: str = field(repr=False)
    service_image: str
    kaniko_image: str
    base_images: Mapping[str, str]
    registry: str
    other_token_keys: tuple[str, ...] = field(default=(), repr=False)
    """Keys whose tokens and proofs are valid too: the earlier or the next `token_key`."""
    internal_tls_url: str = ""
    """URL of the API server for pods by TLS; empty without such a port."""
    internal_ca: str = field(default="", repr=False)
    """The authorities whose certificate at `internal_tls_url` pods accept, PEM; overrides the file."""
    internal_ca_file: AuthorityFile | None = None
    """The file with them, which is read again while the controller leads."""
    internal_plain: bool = True
    """Whether pods may use `internal_url` beside `internal_tls_url`."""
    controller_url: str = ""
    """URL at which build pods reach this process; if empty, the kubelet alone reports their results."""
    controller_tls_url: str = ""
    """The same by TLS, with a certificate of the same authorities; empty without such a port."""
    pod_tls: PodTlsSettings = field(default_factory=PodTlsSettings)
    """The port of `controller_tls_url`."""
    public_url: str = ""
    """Public URL of the API, for links in GitHub reports; empty for no links."""
    github_url: str = "https://api.github.com"
    gitlab_url: str = "https://gitlab.com"
    gitea_url: str = "https://gitea.com"
    registry_insecure: bool = False
    registry_secret: str = ""
    signing: SigningKeys | None = None
    """Keys of attestations; None: images are not attested."""
    install_in_base: bool = True
    """Whether a container of the base image installs dependencies where Kaniko is not needed."""
    pull_ahead: bool = False
    """Whether the image of a new active Deployment is pulled to the nodes that have run the project."""
    verify_images: bool = False
    """Whether a run needs an image with provenance that one of the keys signed."""
    secret_use: SecretUse = SecretUse.ANY
    """Whether a Secret must say which Projects may use it."""
    net_allow: tuple[str, ...] = ()
    net_deny: tuple[str, ...] = ()
    plans: Plans = field(default_factory=Plans)
    limits: InstallationLimits = field(default_factory=InstallationLimits)
    dockerfile_images: tuple[str, ...] = ()
    """Prefixes of images that a crew's own Dockerfile may name, beside the base images."""
    run_egress: tuple[EgressTarget, ...] = ()
    """What `run.egress` of Projects may name."""
    placements: NodePlacements = field(default_factory=NodePlacements)
    """Scheduling and resources of the pods of crews."""
    egress: PodEgress = field(default_factory=PodEgress)
    """Proxies and CA certificates of build pods."""
    namespaces: tuple[str, ...] = ()
    """More namespaces, of teams. Each has settings of its own by `of_namespace`."""
    siblings: tuple[str, ...] = ()
    """In the settings of a team's namespace: all namespaces of the installation."""
    kopf: bool = True
    leader_election: bool = False
    """Whether to wait for a Lease; off for installations whose role has no rights to Leases yet."""
    traces: bool = False
    """Whether the API server exports traces: run times then have the trace of a run as exemplar."""
    log_level: str = "info"
    port: int = 9090
    workers: int = 16
    max_builds: int = 2
    max_builds_per_project: int = 1
    timing: Timing = field(default_factory=Timing)

    @property
    def api_address(self) -> ApiAddress:
        """How pods reach the API server."""
        file = self.internal_ca_file
        authorities = self.internal_ca or (file.current if file is not None else "")
        return ApiAddress(self.internal_url, self.internal_tls_url, authorities, self.internal_plain)

    @property
    def report_url(self) -> str:
        """Where build pods report their results; empty if nowhere."""
        return self.controller_tls_url or (self.controller_url if self.internal_plain else "")

    @property
    def token_keys(self) -> tuple[str, ...]:
        """The keys whose tokens and proofs are valid; the first one signs."""
        return (self.token_key, *self.other_token_keys)

    @property
    def served_namespaces(self) -> tuple[str, ...]:
        """The namespaces that the installation serves, its own first."""
        return served(self.namespace, self.namespaces)

    @property
    def installation_namespaces(self) -> tuple[str, ...]:
        """All namespaces of the installation, also in the settings of one."""
        return self.siblings or self.served_namespaces

    def of_namespace(self, namespace: str) -> "ControllerConfig":
        """Return the settings for the objects of a served namespace."""
        if namespace == self.namespace:
            return self
        return replace(self, namespace=namespace, namespaces=(), siblings=self.installation_namespaces)

    def build_ceiling(self, project: Project) -> int:
        """Return the most builds of a project at a time, by its plan."""
        return self.plans.of(project.plan).concurrent_builds or self.max_builds_per_project

    def limits_of(self, project: Project | None) -> InstallationLimits:
        """Return the limits of a project, by its plan."""
        return self.plans.limits_of(project.plan, self.limits) if project else self.limits

    def repository(self, project: str) -> str:
        """Return the repository of a project's images, without tag or digest."""
        return f"{self.registry.rstrip('/')}/{self.namespace}/{project}"


def parse(environment: Mapping[str, str]) -> ControllerConfig:
    """Parse the settings of an environment. Raises ConfigError that names every problem."""
    problems: list[str] = []

    def read(name: str, convert: Callable[[str], T], fallback: T, required: bool = False) -> T:
        text = environment.get(name, "").strip()
        if not text:
            if required:
                problems.append(f"{name} is not set")
            return fallback
        try:
            return convert(text)
        except ValueError as error:
            problems.append(f"{name}: {error}")
            return fallback

    limits = read_limits(environment, problems)
    signer = read("CREWYARD_SIGNING_KEY", parse_private_key, None)
    previous = read("CREWYARD_VERIFICATION_KEYS", parse_public_keys, tuple[SSlibKey, ...]())
    verify_images = read("CREWYARD_VERIFY_IMAGES", parse_flag, False)
    if verify_images and not environment.get("CREWYARD_SIGNING_KEY", "").strip():
        problems.append("CREWYARD_VERIFY_IMAGES is on without CREWYARD_SIGNING_KEY: no run would start")
    port = read("CREWYARD_CONTROLLER_PORT", _port, 9090)
    plain = read("CREWYARD_INTERNAL_PLAIN", parse_flag, True)
    config = ControllerConfig(
        namespace=read("CREWYARD_NAMESPACE", str, DEFAULT_NAMESPACE),
        namespaces=read("CREWYARD_NAMESPACES", parse_namespaces, ()),
        internal_url=read("CREWYARD_INTERNAL_URL", _url, "", required=True),
        internal_tls_url=read("CREWYARD_INTERNAL_TLS_URL", parse_tls_url, ""),
        internal_ca=read("CREWYARD_INTERNAL_CA", parse_api_authorities, ""),
        internal_ca_file=read("CREWYARD_INTERNAL_CA_FILE", parse_authority_file, None),
        internal_plain=plain,
        controller_url=read("CREWYARD_CONTROLLER_URL", _url, ""),
        controller_tls_url=read("CREWYARD_CONTROLLER_TLS_URL", parse_tls_url, ""),
        pod_tls=parse_controller_tls(environment, port, plain, problems),
        token_key=read("CREWYARD_TOKEN_KEY", _secret, "", required=True),
        other_token_keys=read("CREWYARD_OTHER_TOKEN_KEYS", parse_other_keys, tuple[str, ...]()),
        service_image=read("CREWYARD_SERVICE_IMAGE", str, "", required=True),
        kaniko_image=read("CREWYARD_KANIKO_IMAGE", str, "", required=True),
        base_images=read("CREWYARD_BASE_IMAGES", _images, {}, required=True),
        dockerfile_images=read("CREWYARD_DOCKERFILE_IMAGES", _prefixes, ()),
        registry=read("CREWYARD_REGISTRY", _registry, "", required=True),
        public_url=read("CREWYARD_PUBLIC_URL", _url, ""),
        github_url=read("CREWYARD_GITHUB_URL", _url, "https://api.github.com"),
        gitlab_url=read("CREWYARD_GITLAB_URL", _url, "https://gitlab.com"),
        gitea_url=read("CREWYARD_GITEA_URL", _url, "https://gitea.com"),
        registry_insecure=read("CREWYARD_REGISTRY_INSECURE", parse_flag, False),
        registry_secret=read("CREWYARD_REGISTRY_SECRET", str, ""),
        signing=signing_keys(signer, previous) if signer else None,
        install_in_base=read("CREWYARD_INSTALL_IN_BASE", parse_flag, True),
        pull_ahead=read("CREWYARD_PULL_AHEAD", parse_flag, False),
        verify_images=verify_images,
        secret_use=read("CREWYARD_SECRET_USE", parse_secret_use, SecretUse.ANY),
        net_allow=read("CREWYARD_NET_ALLOW", _destinations, ()),
        net_deny=read("CREWYARD_NET_DENY", _networks, ()),
        run_egress=read("CREWYARD_RUN_EGRESS", parse_targets, ()),
        plans=read("CREWYARD_PLANS", parse_plans, Plans()),
        limits=limits,
        timing=replace(
            Timing.from_limits(limits),
            run_pod_ttl=read("CREWYARD_RUN_POD_TTL", _seconds, Timing.run_pod_ttl),
        ),
        placements=read("CREWYARD_PODS", parse_placements, NodePlacements()),
        egress=PodEgress(
            read("CREWYARD_BUILD_PROXIES", parse_proxies, {}), read("CREWYARD_CA", parse_authorities, "")
        ),
        kopf=read("CREWYARD_KOPF", parse_flag, True),
        leader_election=read("CREWYARD_LEADER_ELECTION", parse_flag, False),
        port=port,
        max_builds=read("CREWYARD_MAX_BUILDS", _count, 2),
        max_builds_per_project=read("CREWYARD_MAX_BUILDS_PER_PROJECT", _count, 1),
        traces=read("CREWYARD_OTLP_ENDPOINT", bool, False),
        log_level=read("CREWYARD_LOG_LEVEL", _level, "info"),
    )
    if address_problem := api_address_problem(config.api_address, config.controller_tls_url):
        problems.append(address_problem)
    if problems:
        raise ConfigError("the controller cannot start:\n" + "\n".join(f"- {line}" for line in problems))
    return config


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError(f"{text!r} is not an http URL, such as http://crewyard-api.crewyard-system.svc:8080")
    return text.rstrip("/")


def _secret(text: str) -> str:
    if len(text) < MIN_TOKEN_KEY_LENGTH:
        raise ValueError(f"at least {MIN_TOKEN_KEY_LENGTH} characters are required; generate them at random")
    return text


def _registry(text: str) -> str:
    if "://" in text:
        raise ValueError(f"{text!r} must not have a scheme; set host[:port][/prefix]")
    return text.rstrip("/")


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise ValueError(f"{text!r} is not a number from 1 to 1000")
    return int(text)


def _seconds(text: str) -> int:
    if not text.isdecimal() or int(text) > MAX_POD_TTL_SECONDS:
        raise ValueError(f"{text!r} is not a number of seconds from 0 to {MAX_POD_TTL_SECONDS}")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise ValueError(f"{text!r} is not a port; set a number from 1 to 65535")
    return int(text)


def _images(text: str) -> dict[str, str]:
    images: Any = json.loads(text)
    if not isinstance(images, dict) or not images:
        raise ValueError('must be a JSON object, such as {"3.11": "registry/python:3.11-slim"}')
    for version, image in images.items():
        if not VERSION.fullmatch(version):
            raise ValueError(f"{version!r} is not a version of Python such as 3.11")
        if not isinstance(image, str) or not image.strip():
            raise ValueError(f"{version} has no image; leave it out, or name one")
    return images


def _prefixes(text: str) -> tuple[str, ...]:
    prefixes: Any = json.loads(text)
    if not isinstance(prefixes, list) or not all(isinstance(each, str) and each for each in prefixes):
        raise ValueError('must be a JSON list of image prefixes, such as ["ghcr.io/acme/"]')
    if wrong := next((each for each in prefixes if "://" in each), None):
        raise ValueError(f"{wrong!r} must not have a scheme; write it like ghcr.io/acme/")
    return tuple(prefixes)


def _destinations(text: str) -> tuple[str, ...]:
    destinations = tuple(part.strip() for part in text.split(",") if part.strip())
    AddressRules.parse(destinations, ())
    return destinations


def _networks(text: str) -> tuple[str, ...]:
    networks = tuple(part.strip() for part in text.split(",") if part.strip())
    AddressRules.parse((), networks)
    return networks


def _level(text: str) -> str:
    if text.lower() not in LOG_LEVELS:
        raise ValueError(f"{text!r} is not one of {', '.join(LOG_LEVELS)}")
    return text.lower()
