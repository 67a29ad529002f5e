"""The Dockerfile of a dependency image, and its installation alone. Called by plan.keys and by build."""

from collections.abc import Iterator

from ..base.render import base_instructions
from .dependencies import DependencyDeclaration
from .installer import index_strategy, needs_pip
from .system_packages import APT_SETTINGS, system_instructions

# The user and group of crews, in the image and in the pod.
CREW_ID = 65532

# Crews may create files next to their code, as many frameworks do, and change their code, which belongs to
# them (build.image.layers); /app is sticky, so they cannot remove what belongs to root.
# No USER before the RUNs, not even root: Kaniko would change its identity, which needs SETUID and SETGID.
_SYSTEM = """\
RUN set -eu; \\
    grep -q '^crew:' /etc/group || echo 'crew:x:{id}:' >> /etc/group; \\
    grep -q '^crew:' /etc/passwd || echo 'crew:x:{id}:{id}::/home/crew:/usr/sbin/nologin' >> /etc/passwd; \\
    mkdir -p /app/artifacts /home/crew /opt/crewyard; \\
    chmod 0755 /app/artifacts /home/crew /opt/crewyard; \\
    chmod 1777 /app; \\
    chown {id}:{id} /app/artifacts /home/crew
ENV HOME=/home/crew TMPDIR=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
"""

# Kaniko mounts the pod's volume at /workspace and excludes it from every layer. A builder without the volume
# needs bind mounts of these.
TREE, WHEELS, UV = "/workspace/tree", "/workspace/wheels", "/workspace/uv"
# Not in the build context, which is what the Dockerfile of a crew can copy.
DECLARED = "/workspace/declared"

# Compiled even where PYTHONDONTWRITEBYTECODE is set: every run then imports langgraph in 0.7 s, not 1.9 s.
# PIP_BREAK_SYSTEM_PACKAGES: the base may be a distribution whose Python is marked as externally managed.
# uv does not know pip's settings, by which a base image names its package mirror.
_ENVIRONMENT = """\
RUN export HOME=/root PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore \\
        PIP_DISABLE_PIP_VERSION_CHECK=1{more}; \\
"""
_MIRROR = """\
    settings=$(python3 -m pip config list 2>/dev/null || true); \\
    setting() {{ printf '%s' "$settings" | sed -n "s/^[a-z]*\\.$1='\\(.*\\)'$/\\1/p" | tail -n 1; }}; \\
    export UV_DEFAULT_INDEX="${{PIP_INDEX_URL:-$(setting index-url)}}" \\
        UV_INDEX="${{PIP_EXTRA_INDEX_URL:-$(setting extra-index-url)}}" \\
        UV_INSECURE_HOST="${{PIP_TRUSTED_HOST:-$(setting trusted-host)}}"; \\
"""
# uv needs a base with glibc; pip installs on the others.
_UV = """\
    if {uv} --version >/dev/null 2>&1; then \\
        install() {{ {uv} pip install --python "$(command -v python3)" --break-system-packages --no-cache \\
            --no-progress --system-certs --no-sources --compile-bytecode{options} "$@"; }}; \\
    else \\
        install() {{ {pip} "$@"; }}; \\
    fi; \\
"""
_PIP = "python3 -m pip install --no-input --no-cache-dir --progress-bar off --compile"
# In the environment, because both pass it on to the installation of build requirements.
_OFFLINE = f" PIP_NO_INDEX=1 PIP_FIND_LINKS={WHEELS} UV_NO_INDEX=1 UV_FIND_LINKS={WHEELS}"
# Tools that read a project's version from git find no repository here. hatch-vcs and pbr have no variable for
# one project: dependencies that are built get this version, too.
_VERSIONS = "export SETUPTOOLS_SCM_PRETEND_VERSION=0.0.0 PBR_VERSION=0.0.0"

# Printed alone on a line: what follows is the second attempt (plan.packages.pip_log).
FROM_PYLOCK = "The index lacks a file of the lock: install again, from the URLs in the lock."

_END = """\
WORKDIR /app
USER {id}:{id}
"""


def dockerfile(
    base_image: str, declaration: DependencyDeclaration, ca_bundle: str = "", python: str = ""
) -> str:
    """Return the Dockerfile: the base, the user, the dependencies; no RUN follows the last USER.

    `base_image` is the configured reference, used where the crew has no Dockerfile; the image of that must
    have `python`. `ca_bundle` is the path, in Kaniko's container, of a CA bundle for pip that replaces the
    base image's.
    """
    system = system_instructions(declaration.system_packages, declaration.dockerfile_lines, ca_bundle)
    base = declaration.base
    first = base_instructions(base, python, APT_SETTINGS) if base else [f"FROM {base_image}\n"]
    parts = [*first, *system, _SYSTEM.format(id=CREW_ID), *_install(declaration, ca_bundle)]
    parts.append(_END.format(id=CREW_ID))
    return "".join(parts)


def needs_dockerfile(declaration: DependencyDeclaration) -> bool:
    """Return whether more than `install_script` on an image without dependencies makes the image."""
    return bool(declaration.base or declaration.system_packages or declaration.dockerfile_lines)


def install_script(declaration: DependencyDeclaration, ca_bundle: str = "") -> str:
    """Return the shell script of the installation, which the Dockerfile has as its last RUN."""
    return "".join(_install(declaration, ca_bundle)).removeprefix("RUN ")


def _install(declaration: DependencyDeclaration, ca_bundle: str) -> Iterator[str]:
    options = ["--no-deps"] if declaration.locked else []
    if declaration.constraints:
        options += [f"-c {DECLARED}/constraints.txt"]
    first = [f"-r {DECLARED}/requirements.txt"] if declaration.lines else []
    # All in one command: what the repository redirects is then taken from it, and never from an index.
    second = [f"-r {DECLARED}/direct.txt"] if declaration.direct else []
    second += [f"{TREE}/{path}".rstrip("/") for path in declaration.projects]
    # Separate commands: hashes do not combine with what has none.
    groups = [[*first, "--require-hashes"], second] if declaration.hashed else [first + second]
    commands: list[str] = []
    for arguments in filter(None, groups):
        command = " ".join(["install", *arguments, *options])
        if declaration.pylock and arguments[:1] == first:
            again = command.replace("requirements.txt", "pylock.toml")
            command = f"{{ {command} || {{ echo '{FROM_PYLOCK}'; {again}; }}; }}"
        pretends = declaration.pretends_version and arguments[-1].startswith(TREE)
        commands.append(f"({_VERSIONS}; {command})" if pretends else command)
    if declaration.added:
        constraints = [option for option in options if option != "--no-deps"]
        commands.append(" ".join(["install", f"-r {DECLARED}/added.txt", *constraints]))
    if not commands:
        return
    yield from _installer(declaration, ca_bundle)
    yield "    " + " \\\n    && ".join(commands) + "\n"


def _installer(declaration: DependencyDeclaration, ca_bundle: str) -> Iterator[str]:
    """Yield the shell function `install`: uv, or pip where uv cannot run or a line is for pip only."""
    more = _OFFLINE if declaration.private_index else ""
    if ca_bundle:
        more += f" PIP_CERT={ca_bundle} SSL_CERT_FILE={ca_bundle}"
    yield _ENVIRONMENT.format(more=more)
    if needs_pip((*declaration.lines, *declaration.direct, *declaration.added)):
        yield f'    install() {{ {_PIP} "$@"; }}; \\\n'
        return
    if not declaration.private_index:
        yield _MIRROR.format()
    yield _UV.format(uv=UV, pip=_PIP, options=index_strategy(declaration.lines))
