"""A private control plane: etcd, apiserver and controller manager without a node.

For tests that change cluster-wide objects (CRDs, roles, namespaces). Objects are
stored, validated and garbage-collected; no pod runs. Uses the programs that
`make up` built, from PATH.
"""

import base64
import json
import shutil
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.testbed.ports import free_port

_TIMEOUT_SECONDS = 180
_TOKEN = "a-token-of-this-test"
_PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")


def missing_programs() -> list[str]:
    """Return the programs missing from PATH."""
    return [name for name in _PROGRAMS if shutil.which(name) is None]


class ControlPlane:
    """Runs while the context is open, with files in `directory` and ports on loopback."""

    def __init__(self, directory: Path, context: str = "test") -> None:
        self.directory = directory
        self.context = context
        self.kubeconfig = directory / "kubeconfig"
        self._processes: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        for _, process in reversed(self._processes):
            process.terminate()
        for _, process in reversed(self._processes):
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=20)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl and return its output; the failure has its error message."""
        process = subprocess.run(
            ["kubectl", f"--kubeconfig={self.kubeconfig}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert process.returncode == 0, f"kubectl {' '.join(arguments)}: {process.stderr}"
        return process.stdout

    def wait_established(self) -> None:
        """Wait for all CRDs; `kubectl wait` fails while the conditions of one are null."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while pending := [
            item["metadata"]["name"]
            for item in json.loads(self.kubectl("get", "crd", "-o", "json"))["items"]
            if not any(
                condition["type"] == "Established" and condition["status"] == "True"
                for condition in (item.get("status") or {}).get("conditions") or ()
            )
        ]:
            assert time.monotonic() < deadline, f"not established: {pending}"
            time.sleep(0.1)

    def stored_objects(self, prefix: str) -> dict[str, Any]:
        """Return the custom resources below `prefix` in etcd, by key."""
        key = prefix.encode()
        end = key[:-1] + bytes([key[-1] + 1])
        response = self._etcd("range", key=_base64(key), range_end=_base64(end))
        return {
            base64.b64decode(kv["key"]).decode(): json.loads(base64.b64decode(kv["value"]))
            for kv in response.get("kvs", [])
        }

    def revisions(self) -> dict[str, tuple[str, str]]:
        """Return create and modify revisions of all keys in etcd."""
        response = self._etcd(
            "range", key=_base64(b"/registry/"), range_end=_base64(b"/registry0"), keys_only=True
        )
        return {
            base64.b64decode(kv["key"]).decode(): (kv["create_revision"], kv["mod_revision"])
            for kv in response["kvs"]
        }

    def store(self, objects: Mapping[str, Any]) -> None:
        """Put objects into etcd as an older apiserver stored them, with their uids, without validation."""
        for key, value in objects.items():
            text = json.dumps(value, separators=(",", ":"))
            self._etcd("put", key=_base64(key.encode()), value=_base64(text.encode()))

    def _etcd(self, call: str, **body: str | bool) -> Any:
        request = urllib.request.Request(f"{self._store}/v3/kv/{call}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.loads(answer.read())

    def _start(self) -> None:
        client, peer, secure, manager = free_ports(4)
        etcd, server = f"http://127.0.0.1:{client}", f"https://127.0.0.1:{secure}"
        self._store = etcd
        pair = self.directory / "sa.key"
        _write_key(pair)
        tokens = self.directory / "tokens.csv"
        tokens.write_text(f'{_TOKEN},admin,admin,"system:masters"\n')
        self._run(
            "etcd",
            data_dir=self.directory / "etcd",
            listen_client_urls=etcd,
            advertise_client_urls=etcd,
            listen_peer_urls=f"http://127.0.0.1:{peer}",
            initial_advertise_peer_urls=f"http://127.0.0.1:{peer}",
            initial_cluster=f"default=http://127.0.0.1:{peer}",
            unsafe_no_fsync="true",
            log_level="warn",
        )
        self._wait_ready("etcd", lambda: _responds(f"{etcd}/health", None))
        certificates = self.directory / "certificates"
        self._run(
            "kube-apiserver",
            bind_address="127.0.0.1",
            advertise_address="127.0.0.1",
            secure_port=secure,
            cert_dir=certificates,
            etcd_servers=etcd,
            token_auth_file=tokens,
            authorization_mode="RBAC",
            service_account_issuer="https://kubernetes.default.svc",
            service_account_key_file=pair,
            service_account_signing_key_file=pair,
            service_cluster_ip_range="10.199.0.0/24",
            endpoint_reconciler_type="none",
            profiling="false",
        )
        authority = certificates / "apiserver.crt"
        self._wait_ready(
            "kube-apiserver", lambda: authority.exists() and _responds(f"{server}/readyz", authority)
        )
        self.kubeconfig.write_text(_kubeconfig(self.context, server, authority))
        self._run(
            "kube-controller-manager",
            kubeconfig=self.kubeconfig,
            bind_address="127.0.0.1",
            secure_port=manager,
            cert_dir=certificates,
            leader_elect="false",
            use_service_account_credentials="false",
            service_account_private_key_file=pair,
            controllers="namespace-controller,garbage-collector-controller,serviceaccount-controller,"
            "clusterrole-aggregation-controller,persistentvolumeclaim-protection-controller",
        )

    def _run(self, name: str, **flags: object) -> None:
        program = shutil.which(name)
        assert program, f'{name} is not on PATH: run `make up`, then eval "$(make -s env)"'
        argv = [program, *(f"--{key.replace('_', '-')}={value}" for key, value in flags.items())]
        with (self.directory / f"{name}.log").open("wb") as log:
            self._processes.append((name, subprocess.Popen(argv, stdout=log, stderr=log)))

    def _wait_ready(self, name: str, is_ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        process = dict(self._processes)[name]
        while not is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                log = (self.directory / f"{name}.log").read_text(errors="replace")
                raise AssertionError(f"{name} does not answer; its log ends:\n{log[-3000:]}")
            time.sleep(0.2)


def free_ports(count: int) -> list[int]:
    """Return distinct free ports."""
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_port())
    return list(ports)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _write_key(path: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )


def _responds(url: str, authority: Path | None) -> bool:
    headers = {"Authorization": f"Bearer {_TOKEN}"}
    context = ssl.create_default_context(cafile=authority) if authority else None
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=5, context=context):
            return True
    except OSError:
        return False


def _kubeconfig(context: str, server: str, authority: Path) -> str:
    return f"""apiVersion: v1
kind: Config
clusters:
- name: {context}
  cluster: {{server: "{server}", certificate-authority: "{authority}"}}
users:
- name: {context}
  user: {{token: {_TOKEN}}}
contexts:
- name: {context}
  context: {{cluster: {context}, user: {context}}}
current-context: {context}
"""
