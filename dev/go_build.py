"""Builds the Go tools: Kubernetes with etcd in one file, the Kaniko executor, and those that tests use.

Called by `up` and `tools`. The file is kept under a hash of all that goes into it, so a
second build of the same happens only after that has changed.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from dev.process import command
from dev.progress import Progress
from dev.settings import KUBERNETES_VERSION, REPOSITORY, Settings

_BUILD_SECONDS = 45 * 60
_VERSION = "k8s.io/component-base/version"
_MAJOR, _MINOR, _ = KUBERNETES_VERSION.split(".")

NAMES = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
    "kubeadm",
    "kubectl",
)


@dataclass(frozen=True)
class Tool:
    """A Go module below dev/tools and the package of it that becomes a program."""

    name: str
    package: str
    linker_flags: str
    cold: str
    module: str = ""

    @property
    def source(self) -> Path:
        """The module's directory."""
        return REPOSITORY / "dev" / "tools" / (self.module or self.name)


KUBERNETES = Tool(
    name="kubernetes",
    package=".",
    linker_flags=(
        f"-s -w -X {_VERSION}.gitVersion=v{KUBERNETES_VERSION} -X {_VERSION}.gitMajor={_MAJOR} "
        f"-X {_VERSION}.gitMinor={_MINOR} -X {_VERSION}.gitTreeState=clean"
    ),
    cold="about 6 min on 2 cores the first time",
)
KANIKO = Tool(
    name="kaniko",
    package="github.com/GoogleContainerTools/kaniko/cmd/executor",
    linker_flags="-s -w",
    cold="about 2 min on 2 cores the first time",
)

KIND = Tool("kind", "sigs.k8s.io/kind", "-s -w", "half a minute the first time")

ACT = Tool("act", "github.com/nektos/act", "-s -w", "about a minute the first time", "actions")
ACTIONLINT = Tool(
    "actionlint",
    "github.com/rhysd/actionlint/cmd/actionlint",
    "-s -w",
    "some seconds the first time",
    "actions",
)
VERSITYGW = Tool(
    "versitygw",
    "github.com/versity/versitygw/cmd/versitygw",
    "-s -w",
    "about a minute the first time",
)
OAPI_CODEGEN = Tool(
    "oapi-codegen",
    "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen",
    "-s -w",
    "some seconds the first time",
)
KSTATUS = Tool("kstatus", ".", "-s -w", "some seconds the first time")
HELM = Tool(
    "helm",
    "helm.sh/helm/v3/cmd/helm",
    # Without these it takes itself for a client of Kubernetes 1.20 where it renders without a cluster.
    "-s -w "
    + " ".join(
        f"-X helm.sh/helm/v3/{package}.k8sVersionMajor={_MAJOR} "
        f"-X helm.sh/helm/v3/{package}.k8sVersionMinor={_MINOR}"
        for package in ("pkg/chartutil", "pkg/lint/rules")
    ),
    "about 2 min the first time",
    "charts",
)
KUBECONFORM = Tool(
    "kubeconform",
    "github.com/yannh/kubeconform/cmd/kubeconform",
    "-s -w",
    "some seconds the first time",
    "charts",
)
KWOK = Tool("kwok", "sigs.k8s.io/kwok/cmd/kwok", "-s -w", "about 1.5 min the first time")
"""Built by the measurements that need it, and by nothing else."""
TESTED_WITH = (ACT, ACTIONLINT, HELM, KIND, KSTATUS, KUBECONFORM, OAPI_CODEGEN, VERSITYGW)


def key(tool: Tool, go_version: str) -> str:
    """A hash of the module's files, the compiler and the flags."""
    digest = hashlib.sha256()
    for path in sorted(tool.source.iterdir()):
        if path.suffix == ".go" or path.name in ("go.mod", "go.sum"):
            content = path.read_bytes()
            digest.update(f"{path.name} {len(content)}\n".encode() + content)
    digest.update(f"{go_version}\n{tool.package}\n{tool.linker_flags}".encode())
    return digest.hexdigest()[:16]


def binary(settings: Settings, tool: Tool, go_version: str) -> Path:
    """Where the built program is or will be."""
    return settings.data / "tools" / f"{tool.name}-{key(tool, go_version)}"


def build(settings: Settings, tool: Tool, progress: Progress) -> Path:
    """The built program, made now if it is not there. Raises CommandFailed with the compiler's last lines."""
    go_version = command.ask(["go", "version"]).strip()
    target = binary(settings, tool, go_version)
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_suffix(".new")
    argv = [
        "go",
        "build",
        "-v",
        "-trimpath",
        "-buildvcs=false",
        "-ldflags",
        tool.linker_flags,
        "-o",
        str(fresh),
        tool.package,
    ]
    with progress.step(f"building {tool.name} ({tool.cold})") as step:
        log = settings.logs / f"build-{tool.name}.log"
        environment = {"CGO_ENABLED": "0"}
        command.run(
            argv, step=step, log=log, seconds=_BUILD_SECONDS, cwd=tool.source, environment=environment
        )
        fresh.replace(target)
        step.detail = ""
    for old in target.parent.glob(f"{tool.name}-*"):
        if old != target:
            old.unlink()
    return target


def link(settings: Settings, kubernetes: Path) -> None:
    """Gives the one program of Kubernetes its names in `bin`."""
    settings.bin.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        _link(settings.bin / name, kubernetes)


def workflow_tools(settings: Settings, progress: Progress) -> None:
    """Has what only tests use in `bin`. Raises GroundError."""
    settings.bin.mkdir(parents=True, exist_ok=True)
    settings.logs.mkdir(parents=True, exist_ok=True)
    for tool in TESTED_WITH:
        _link(settings.bin / tool.name, build(settings, tool, progress))


def _link(path: Path, target: Path) -> None:
    if not path.is_symlink() or path.readlink() != target:
        path.unlink(missing_ok=True)
        path.symlink_to(target)
