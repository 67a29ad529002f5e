"""Builds of the Go tools: Kubernetes with etcd in one binary, the Kaniko executor, and test tools.

Called by `up` and `tools`. A binary is stored under a hash of all its inputs and built again only when they
change.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dev.process import command
from dev.progress import StepProgress
from dev.settings import KUBERNETES_VERSION, REPOSITORY, Settings

_BUILD_TIMEOUT_SECONDS = 45 * 60
# The compiler spends about a fifth of its time on its own garbage collection. The limit is for each process.
_COMPILER_MEMORY = {"GOGC": "400", "GOMEMLIMIT": "2GiB"}
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
class GoTool:
    """A Go module below dev/tools and its package that becomes a binary."""

    name: str
    package: str
    linker_flags: str
    cold_build_time: str
    module: str = ""

    @property
    def source(self) -> Path:
        """The module's directory."""
        return REPOSITORY / "dev" / "tools" / (self.module or self.name)


KUBERNETES = GoTool(
    name="kubernetes",
    package=".",
    linker_flags=(
        f"-s -w -X {_VERSION}.gitVersion=v{KUBERNETES_VERSION} -X {_VERSION}.gitMajor={_MAJOR} "
        f"-X {_VERSION}.gitMinor={_MINOR} -X {_VERSION}.gitTreeState=clean"
    ),
    cold_build_time="6 to 13 min on 2 cores the first time",
)
KANIKO = GoTool(
    name="kaniko",
    package="github.com/GoogleContainerTools/kaniko/cmd/executor",
    linker_flags="-s -w",
    cold_build_time="2 to 7 min on 2 cores the first time",
)

KIND = GoTool("kind", "sigs.k8s.io/kind", "-s -w", "half a minute the first time")

ACT = GoTool("act", "github.com/nektos/act", "-s -w", "about a minute the first time", "actions")
ACTIONLINT = GoTool(
    "actionlint",
    "github.com/rhysd/actionlint/cmd/actionlint",
    "-s -w",
    "some seconds the first time",
    "actions",
)
VERSITYGW = GoTool(
    "versitygw",
    "github.com/versity/versitygw/cmd/versitygw",
    "-s -w",
    "about a minute the first time",
)
OAPI_CODEGEN = GoTool(
    "oapi-codegen",
    "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen",
    "-s -w",
    "some seconds the first time",
)
DEX = GoTool("dex", ".", "-s -w", "about 2 min the first time")
KSTATUS = GoTool("kstatus", ".", "-s -w", "some seconds the first time")
HELM = GoTool(
    "helm",
    "helm.sh/helm/v3/cmd/helm",
    # Without these, rendering without a cluster assumes Kubernetes 1.20.
    "-s -w "
    + " ".join(
        f"-X helm.sh/helm/v3/{package}.k8sVersionMajor={_MAJOR} "
        f"-X helm.sh/helm/v3/{package}.k8sVersionMinor={_MINOR}"
        for package in ("pkg/chartutil", "pkg/lint/rules")
    ),
    "about 2 min the first time",
    "charts",
)
KUBECONFORM = GoTool(
    "kubeconform",
    "github.com/yannh/kubeconform/cmd/kubeconform",
    "-s -w",
    "some seconds the first time",
    "charts",
)
KWOK = GoTool("kwok", "sigs.k8s.io/kwok/cmd/kwok", "-s -w", "about 1.5 min the first time")
"""Built only by the measurements that need it."""
COSIGN = GoTool(
    "cosign",
    "github.com/sigstore/cosign/v2/cmd/cosign",
    "-s -w",
    "about 6 min on 2 idle cores the first time",
)
KUEUE = GoTool(
    "kueue",
    "sigs.k8s.io/kueue/cmd/kueue",
    "-s -w",
    "about 4 min on 2 idle cores the first time",
)
NIGHTLY_TOOLS = (COSIGN, KUEUE)
"""Built only for the tests of the night: they are large."""
TEST_TOOLS = (ACT, ACTIONLINT, DEX, HELM, KIND, KSTATUS, KUBECONFORM, OAPI_CODEGEN, VERSITYGW)


def key(tool: GoTool, go_version: str) -> str:
    """Return a hash of the module's files, the compiler version and the flags."""
    digest = hashlib.sha256()
    for path in sorted(tool.source.iterdir()):
        if path.suffix == ".go" or path.name in ("go.mod", "go.sum"):
            content = path.read_bytes()
            digest.update(f"{path.name} {len(content)}\n".encode() + content)
    digest.update(f"{go_version}\n{tool.package}\n{tool.linker_flags}".encode())
    return digest.hexdigest()[:16]


def binary(settings: Settings, tool: GoTool, go_version: str) -> Path:
    """Return the path of the binary, built or not."""
    return settings.data / "tools" / f"{tool.name}-{key(tool, go_version)}"


def build(settings: Settings, tool: GoTool, progress: StepProgress) -> Path:
    """Return the binary; build it if absent. Raises CommandFailed with the compiler's last lines."""
    go_version = command.read_output(["go", "version"]).strip()
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
    with progress.step(f"building {tool.name} ({tool.cold_build_time})") as step:
        log = settings.logs / f"build-{tool.name}.log"
        environment = {"CGO_ENABLED": "0", **_COMPILER_MEMORY}
        command.run(
            argv, step=step, log=log, seconds=_BUILD_TIMEOUT_SECONDS, cwd=tool.source, environment=environment
        )
        fresh.replace(target)
        step.detail = ""
    for old in target.parent.glob(f"{tool.name}-*"):
        if old != target:
            old.unlink()
    return target


def link(settings: Settings, kubernetes: Path) -> None:
    """Link the Kubernetes binary under each of its names in `bin`."""
    settings.bin.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        _link(settings.bin / name, kubernetes)


def build_test_tools(
    settings: Settings, progress: StepProgress, tools: Iterable[GoTool] = TEST_TOOLS
) -> None:
    """Build tools that only tests use and link them in `bin`. Raises DevClusterError."""
    settings.bin.mkdir(parents=True, exist_ok=True)
    settings.logs.mkdir(parents=True, exist_ok=True)
    for tool in tools:
        _link(settings.bin / tool.name, build(settings, tool, progress))


def _link(path: Path, target: Path) -> None:
    if not path.is_symlink() or path.readlink() != target:
        path.unlink(missing_ok=True)
        path.symlink_to(target)
