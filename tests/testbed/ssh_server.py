"""An SSH server for tests: a real sshd on a free port with its own keys, which runs only `git-shell`.

    with SshServer(directory) as server:
        repository = server.git.create("demo")
        server.url("demo")            # ssh://root@127.0.0.1:40123/…/demo.git
        server.known_hosts("ed25519")   # what ssh-keyscan would print
        server.identity("ed25519")      # an authorized private key

Needs Debian's openssh-server and git; it serves as the user who runs the tests.
"""

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.testbed.git_server import GitServer, Repository
from tests.testbed.ports import free_port

_TIMEOUT_SECONDS = 60
_SSHD = "/usr/sbin/sshd"
_CONFIGURATION = """\
Port {port}
ListenAddress {address}
{host_keys}
AuthorizedKeysFile {authorized}
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
AllowTcpForwarding no
PidFile none
MaxStartups 200
ForceCommand {command}
{more}
"""


class SshServer:
    """Serves the repositories below `root` over SSH while the context is open."""

    def __init__(
        self,
        root: Path,
        address: str = "127.0.0.1",
        kinds: tuple[str, ...] = ("ed25519",),
        command: str = "",
        more: str = "",
    ) -> None:
        if not Path(_SSHD).exists() or shutil.which("git-shell") is None:
            pytest.skip("sshd is not installed (Debian package openssh-server)")
        self.root, self.address, self._kinds, self._more = root, address, kinds, more
        self._command = command or 'exec git-shell -c "$SSH_ORIGINAL_COMMAND"'
        self._keys = root / "keys"
        self._keys.mkdir(parents=True)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.log = root / "sshd.log"

    def __enter__(self) -> "SshServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start sshd with the existing host keys. Fail if it does not start."""
        for kind in self._kinds:
            self._key("host", kind)
        configuration = self.root / "sshd_config"
        configuration.write_text(
            _CONFIGURATION.format(
                port=self.port,
                address=self.address,
                host_keys="\n".join(f"HostKey {self._keys}/host_{kind}" for kind in self._kinds),
                authorized=self._keys / "authorized",
                command=self._command,
                more=self._more,
            )
        )
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen([_SSHD, "-D", "-e", "-f", str(configuration)], stderr=log)
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            try:
                socket.create_connection((self.address, self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        self.stop()
        pytest.fail(f"sshd did not start: {self.log.read_text()}")

    def stop(self) -> None:
        """Stop sshd."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_TIMEOUT_SECONDS)
            self._process = None

    def change_host_keys(self) -> None:
        """Restart sshd with new host keys, as after a reinstallation."""
        self.stop()
        for file in self._keys.glob("host_*"):
            file.unlink()
        self.start()

    def create(self, name: str) -> Repository:
        """Return the repository `name`; create it if it is missing."""
        return GitServer.repository(self.root, name)

    def url(self, name: str, host: str = "") -> str:
        """Return the URL of the repository `name`; `host` overrides the address."""
        return f"ssh://{getpass.getuser()}@{host or self.address}:{self.port}{self.root / name}.git"

    def identity(
        self, kind: str = "ed25519", form: str = "", passphrase: str = "", admit: bool = True
    ) -> str:
        """Return a new private key; `form` PEM or PKCS8 selects an OpenSSL format."""
        private = self._key(f"id{form}{passphrase}{admit}", kind, form, passphrase)
        if admit:
            with (self._keys / "authorized").open("a") as file:
                file.write(private.with_suffix(".pub").read_text())
        return private.read_text()

    def known_hosts(self, kind: str = "ed25519", host: str = "") -> str:
        """Return the known_hosts line of a host key type."""
        words = (self._keys / f"host_{kind}.pub").read_text().split()
        return f"[{host or self.address}]:{self.port} {words[0]} {words[1]}\n"

    def fingerprint(self, kind: str = "ed25519") -> str:
        """Return the fingerprint of a host key as ssh-keygen prints it."""
        command = ["ssh-keygen", "-l", "-f", str(self._keys / f"host_{kind}.pub")]
        done = subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_SECONDS)
        return done.stdout.decode().split()[1]

    def _key(self, name: str, kind: str, form: str = "", passphrase: str = "") -> Path:
        private = self._keys / f"{name}_{kind}"
        if not private.exists():
            more = ["-m", form] if form else []
            command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-f", str(private), *more]
            subprocess.run(command, check=True, capture_output=True, timeout=60)
        return private
