"""Settings of a build pod, parsed once from its environment. Called by build.__main__.

docs/protocol.md describes the environment.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from build.json_object import JsonObject, json_variable, variable
from build.registry.credential import RegistryCredential
from egress.git.credentials import GitCredentials


@dataclass(frozen=True)
class GitSource:
    """One commit of a repository, and the directory of the source in it."""

    url: str
    commit: str
    path: str = ""


@dataclass(frozen=True)
class CommitSigners:
    """Public keys that may sign commits: lines of ssh's allowed_signers, and armored OpenPGP keys."""

    allowed_signers: str = ""
    openpgp_keys: str = ""


@dataclass(frozen=True)
class ArchiveSource:
    """An upload, by id and SHA-256 (hexadecimal); an empty one is not compared."""

    upload: str
    sha256: str = ""


@dataclass(frozen=True)
class IndexCredentials:
    """Credentials of a private package index; set only in container `source` of projects that have one."""

    url: str = field(default="", repr=False)
    extra_url: str = field(default="", repr=False)
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)


@dataclass(frozen=True)
class SourceLimits:
    """Limits of a source: compressed and unpacked bytes, entries, ratio of unpacked to compressed bytes."""

    context_bytes: int = 100 << 20
    unpacked_bytes: int = 1 << 30
    entries: int = 50_000
    ratio: int = 100


@dataclass(frozen=True)
class FetchNetworks:
    """Networks (CIDR) that fetches may reach although denied by default, and networks to deny in addition."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProvenImage:
    """Digests of a crew's image and of its dependency image."""

    image: str
    dependencies: str


@dataclass(frozen=True)
class ProvenImages:
    """Images that builds have made, by key; only these are taken from the registry, and by digest.

    `shared` are digests in the repository that all projects share.
    """

    images: Mapping[str, ProvenImage] = field(default_factory=dict)
    dependencies: Mapping[str, str] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BuildSettings:
    """All settings.

    `base_images` maps Python versions to image references, in the order of text: the first is the default.
    `private_index` is the name of the Secret of the project's package index, or empty. `dockerfile` is the
    Dockerfile of the project, or empty, `dockerfile_images` are prefixes of images that one may name.
    `requirements` are packages that the project adds. With `signers`, only commits that they signed are
    built.
    """

    internal_url: str
    token: str = field(repr=False)
    pod: str
    pod_uid: str
    controller_url: str
    namespace: str
    project: str
    deployment: str
    source: GitSource | ArchiveSource
    crew: str | None
    registry_prefix: str
    registry_insecure: bool
    base_images: Mapping[str, str]
    network: FetchNetworks
    limits: SourceLimits
    dependencies_key: str | None
    git: GitCredentials
    registry_credential: RegistryCredential
    private_index: str = ""
    dockerfile: str = ""
    dockerfile_images: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    """The namespaces of the installation, if it has several."""
    requirements: tuple[str, ...] = ()
    image_bytes: int = 0
    """Maximum of an image, compressed; 0: none, as in the request of an earlier controller."""
    index: IndexCredentials = IndexCredentials()
    signers: CommitSigners | None = None
    proven: ProvenImages = ProvenImages()
    install_in_base: bool = False
    """Whether a container of the base image may install dependencies, in place of Kaniko."""
    base_digest: str = ""
    """The image of the repository in which this pod installs the dependencies; empty: Kaniko builds them."""
    internal_ca: str = ""
    """The only authorities of API server and controller that are accepted; empty: those of the system."""

    @property
    def repository(self) -> str:
        """The repository of the project's images: `host[:port]/…/namespace/project`."""
        return f"{self.registry_prefix.rstrip('/')}/{self.namespace}/{self.project}"

    @property
    def crews(self) -> tuple[str, ...]:
        """The prefixes of the images of all crews of the installation."""
        namespaces = dict.fromkeys((self.namespace, *self.namespaces))
        return tuple(f"{self.registry_prefix.rstrip('/')}/{each}/" for each in namespaces)


def read_settings(environ: Mapping[str, str]) -> BuildSettings:
    """Parse the settings from `environ`. Raises BuildSettingsInvalid naming the variable and key."""
    build = json_variable(environ, "CREWYARD_BUILD")
    registry, network, limits = (
        build.object("registry"),
        build.object("network", {}),
        build.object("limits", {}),
    )
    dependencies = build.object("dependencies", {})
    return BuildSettings(
        internal_url=variable(environ, "CREWYARD_INTERNAL_URL").rstrip("/"),
        internal_ca=environ.get("CREWYARD_INTERNAL_CA", ""),
        token=variable(environ, "CREWYARD_TOKEN"),
        pod=environ.get("CREWYARD_POD", ""),
        pod_uid=environ.get("CREWYARD_POD_UID", ""),
        controller_url=environ.get("CREWYARD_CONTROLLER_URL", ""),
        namespace=build.text("namespace"),
        project=build.text("project"),
        deployment=environ.get("CREWYARD_DEPLOYMENT") or build.text("deployment"),
        source=_source(build.object("source")),
        crew=build.values.get("crew"),
        registry_prefix=registry.text("prefix"),
        registry_insecure=bool(registry.values.get("insecure", False)),
        base_images={str(k): str(v) for k, v in build.object("base_images").values.items()},
        network=FetchNetworks(tuple(network.values.get("allow", ())), tuple(network.values.get("deny", ()))),
        limits=SourceLimits(
            **{k: int(v) for k, v in limits.values.items() if k in SourceLimits.__dataclass_fields__}
        ),
        dependencies_key=dependencies.values.get("key"),
        git=GitCredentials(
            environ.get("GIT_USERNAME", ""),
            environ.get("GIT_PASSWORD", ""),
            environ.get("GIT_BEARER_TOKEN", ""),
            environ.get("GIT_CA_CRT", ""),
            environ.get("GIT_IDENTITY", ""),
            environ.get("GIT_KNOWN_HOSTS", ""),
        ),
        registry_credential=RegistryCredential.read(environ, registry),
        private_index=str(build.values.get("private_index") or ""),
        dockerfile=str(build.values.get("dockerfile") or ""),
        dockerfile_images=tuple(map(str, build.values.get("dockerfile_images") or ())),
        namespaces=tuple(map(str, build.values.get("namespaces") or ())),
        requirements=tuple(map(str, build.values.get("requirements") or ())),
        image_bytes=int(build.values.get("image_bytes") or 0),
        index=IndexCredentials(
            environ.get("PIP_INDEX_URL", ""),
            environ.get("PIP_EXTRA_INDEX_URL", ""),
            environ.get("INDEX_USERNAME", ""),
            environ.get("INDEX_PASSWORD", ""),
        ),
        signers=CommitSigners(environ.get("GIT_ALLOWED_SIGNERS", ""), environ.get("GIT_OPENPGP_KEYS", ""))
        if build.values.get("verify")
        else None,
        proven=_proven(build.object("proven", {})),
        install_in_base=bool(build.values.get("install_in_base")),
        base_digest=str(dependencies.object("base", {}).values.get("digest") or ""),
    )


def _proven(given: JsonObject) -> ProvenImages:
    images = given.object("images", {})
    return ProvenImages(
        {
            key: ProvenImage(one.text("image"), one.text("dependencies"))
            for key, one in ((key, images.object(key)) for key in images.values)
        },
        {str(key): str(digest) for key, digest in given.object("dependencies", {}).values.items()},
        {str(key): str(digest) for key, digest in given.object("shared", {}).values.items()},
    )


def _source(source: JsonObject) -> GitSource | ArchiveSource:
    if "git" in source.values:
        git = source.object("git")
        return GitSource(git.text("url"), git.text("commit"), str(git.values.get("path") or ""))
    archive = source.object("archive")
    return ArchiveSource(archive.text("upload"), str(archive.values.get("sha256") or ""))
