"""The Dockerfile of a dependency image. Called by plan.keys and by the dependencies pod."""

from collections.abc import Iterator

from .dependencies import DependencyDeclaration
from .system_packages import system_instructions

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

# pip compiles packages even where PYTHONDONTWRITEBYTECODE is set. Measured with langgraph: the build takes
# 4 s longer, and every run imports it in 0.7 s instead of 1.9 s.
# PIP_BREAK_SYSTEM_PACKAGES: the base may be a distribution whose Python is marked as externally managed.
_PIP = """\
HOME=/root PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1{more} \\
    python3 -m pip install --no-input --no-cache-dir --progress-bar off --compile {arguments}"""

# Kaniko mounts the pod's volume at /workspace and excludes it from every layer, whereas files of a COPY stay
# in its layer. A builder without the volume needs bind mounts of these two directories.
TREE, WHEELS = "/workspace/tree", "/workspace/wheels"
# In the environment, because pip passes it on to the pip that installs build requirements.
_OFFLINE = f" PIP_NO_INDEX=1 PIP_FIND_LINKS={WHEELS}"
# Tools that read a project's version from git find no repository here.
_VERSIONS = " SETUPTOOLS_SCM_PRETEND_VERSION=0.0.0 PBR_VERSION=0.0.0"

_END = """\
WORKDIR /app
USER {id}:{id}
"""


def dockerfile(base_image: str, declaration: DependencyDeclaration, ca_bundle: str = "") -> str:
    """Return the Dockerfile: the base, the user, the dependencies; no RUN follows the last USER.

    `base_image` is the configured reference; `ca_bundle` is the path, in Kaniko's container, of a CA bundle
    for pip that replaces the base image's.
    """
    system = system_instructions(declaration.system_packages, declaration.dockerfile_lines, ca_bundle)
    parts = [f"FROM {base_image}\n", *system, _SYSTEM.format(id=CREW_ID), *_install(declaration, ca_bundle)]
    parts.append(_END.format(id=CREW_ID))
    return "".join(parts)


def _install(declaration: DependencyDeclaration, ca_bundle: str) -> Iterator[str]:
    names = sorted(declaration.files())
    extra_env = _OFFLINE if declaration.private_index else ""
    if ca_bundle:
        extra_env += f" PIP_CERT={ca_bundle}"
    options = ["--no-deps"] if declaration.locked else []
    if "constraints.txt" in names:
        options += ["-c /tmp/crewyard/constraints.txt"]
    first = ["-r /tmp/crewyard/requirements.txt"] if declaration.lines else []
    # All in one command: pip then takes what the repository redirects from there, and asks no index for it.
    second = ["-r /tmp/crewyard/direct.txt"] if declaration.direct else []
    second += [f"{TREE}/{path}".rstrip("/") for path in declaration.projects]
    # Separate commands: pip does not combine pins with hashes and what has none.
    groups = [first, second] if declaration.hashed else [first + second]
    commands = []
    for arguments in filter(None, groups):
        versions = _VERSIONS if declaration.projects and arguments[-1].startswith(TREE) else ""
        commands.append(_PIP.format(more=extra_env + versions, arguments=" ".join([*arguments, *options])))
    if commands and names:
        yield f"COPY {' '.join(names)} /tmp/crewyard/\n"
        commands.append("rm -rf /tmp/crewyard")
    if commands:
        yield "RUN " + " \\\n    && ".join(commands) + "\n"
