"""kind's cluster and the registry beside it: create, start, connect, remove."""

import json
import shutil
import time
from collections.abc import Mapping

from dev import files, go_build
from dev.cluster.kube_client import KubeApiError
from dev.cluster.kubectl import KubectlApi
from dev.errors import DevClusterError
from dev.kind import configuration, docker, owner
from dev.process import command
from dev.progress import StepProgress
from dev.settings import Settings

_CREATE_SECONDS = 900
_READY_TIMEOUT_SECONDS = 180
_PAUSE_SECONDS = 1.0
_DNS = "/api/v1/namespaces/kube-system/configmaps/coredns"


def program(settings: Settings, progress: StepProgress) -> str:
    """Return kind in the required version, from PATH or built. Raises DevClusterError."""
    path = shutil.which("kind")
    if path and f" v{configuration.VERSION} " in f"{command.read_output([path, 'version'])} ":
        return path
    if shutil.which("go") is None:
        raise DevClusterError(
            f"kind {configuration.VERSION} is not on PATH, and Go is not installed to build it. Install one "
            "of them: https://kind.sigs.k8s.io/docs/user/quick-start/#installation or https://go.dev/dl/"
        )
    return str(go_build.build(settings, go_build.KIND, progress))


def names() -> list[str]:
    """Return the nodes' containers: the control plane, even if it does not exist, then the workers."""
    label = f"label={configuration.CLUSTER_LABEL}={configuration.CLUSTER}"
    found = docker.run("ps", "--all", f"--filter={label}", "--format={{.Names}}").split()
    return [configuration.NODE, *sorted(name for name in found if name != configuration.NODE)]


def ensure(kind: str, own: Settings, environment: Mapping[str, str], progress: StepProgress) -> None:
    """Create the cluster or start its nodes, and write its kubeconfig. Raises DevClusterError."""
    if docker.running(configuration.NODE) is None:
        # Written last: a node without a kubeconfig is incomplete.
        own.kubeconfig.unlink(missing_ok=True)
        own.configuration.mkdir(parents=True, exist_ok=True)
        file = own.configuration / "cluster.json"
        image, workers = configuration.node_image(environment), configuration.workers(environment)
        file.write_text(json.dumps(configuration.cluster(image, workers), indent=2))
        with progress.step(f"kind cluster ({image.partition('@')[0]})") as step:
            unfinished = own.configuration / "unfinished"
            argv = [kind, "create", "cluster", f"--config={file}", f"--kubeconfig={unfinished}"]
            command.run([*argv, "--wait=180s"], step=step, log=own.logs / "kind.log", seconds=_CREATE_SECONDS)
            step.detail = ""
        unfinished.unlink(missing_ok=True)
    elif not own.kubeconfig.exists():
        raise DevClusterError(
            f"The kind cluster {configuration.CLUSTER} is incomplete: an earlier `make up` was "
            f"interrupted, or its state was removed from {own.state}. Remove it and start again: "
            "make down PURGE=1 CREWYARD_CLUSTER=kind, then make up"
        )
    for name in names():
        if not docker.running(name):
            docker.run("start", name)
    kubeconfig = command.read_output([kind, "get", "kubeconfig", f"--name={configuration.CLUSTER}"])
    files.write(own.kubeconfig, kubeconfig, files.PRIVATE_MODE)


def wait_ready(kubectl: KubectlApi) -> None:
    """Wait until the kube-apiserver of started nodes is ready. Raises DevClusterError after three minutes."""
    deadline = time.monotonic() + _READY_TIMEOUT_SECONDS
    while True:
        try:
            kubectl.text("/readyz")
            return
        except KubeApiError as error:
            if time.monotonic() > deadline:
                raise DevClusterError(
                    f"The kube-apiserver of the kind cluster is not ready: {error}. "
                    f"See: docker logs {configuration.NODE}"
                ) from error
        time.sleep(_PAUSE_SECONDS)


def gateway() -> str:
    """Return this machine's address for pods. Raises DevClusterError."""
    network = docker.inspect("network", configuration.NETWORK)
    address = configuration.gateway(network) if network else None
    if not address:
        raise DevClusterError(f"Docker's network {configuration.NETWORK} has no IPv4 address. Run `make up`.")
    return address


def ensure_registry() -> None:
    """Create or start the registry container, and configure the nodes to use it."""
    running = docker.running(configuration.REGISTRY_CONTAINER)
    if running is None:
        docker.run("run", *configuration.registry_arguments(gateway()), seconds=300)
    elif not running:
        docker.run("start", configuration.REGISTRY_CONTAINER)
    file = f"{configuration.HOSTS_DIRECTORY}/hosts.toml"
    for node in names():
        docker.run("exec", node, "mkdir", "-p", configuration.HOSTS_DIRECTORY)
        docker.run("exec", "-i", node, "cp", "/dev/stdin", file, stdin=configuration.hosts_file())


def ensure_names(kubectl: KubectlApi) -> None:
    """Add the host names of this machine and the registry to the cluster's DNS. Raises DevClusterError."""
    registry = docker.address(configuration.REGISTRY_CONTAINER, configuration.NETWORK)
    current = kubectl.call("GET", _DNS)["data"]["Corefile"]
    try:
        desired = configuration.with_hosts(current, gateway(), registry)
    except ValueError as error:
        raise DevClusterError(f"The cluster's DNS cannot be configured: {error}") from error
    kubectl.run("apply", "-f", "-", stdin=json.dumps(configuration.registry_hosting()))
    if desired == current:
        return
    patch = json.dumps({"data": {"Corefile": desired}})
    kubectl.run("-n", "kube-system", "patch", "configmap", "coredns", "--type=merge", "-p", patch)
    kubectl.run("-n", "kube-system", "rollout", "restart", "deployment/coredns")
    kubectl.run("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=180s", seconds=200)


def stop() -> None:
    """Stop the containers; their data stays."""
    for name in (*names(), configuration.REGISTRY_CONTAINER):
        if docker.running(name):
            docker.run("stop", "--time=20", name)


def remove(kind: str) -> None:
    """Remove the containers with their data."""
    command.read_output([kind, "delete", "cluster", f"--name={configuration.CLUSTER}"], seconds=180)
    if docker.running(configuration.REGISTRY_CONTAINER) is not None:
        docker.run("rm", "--force", "--volumes", configuration.REGISTRY_CONTAINER)
    owner.release()
