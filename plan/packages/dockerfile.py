"""The Dockerfile of a dependency image. Called by plan.keys and by the dependencies pod."""

from collections.abc import Iterator

from .dependencies import Declaration

# The user and group of crews, in the image and in the pod.
CREW_ID = 65532

# Crews may write beside their code, as many frameworks do, but not change it: /app is sticky.
# No USER before the RUNs, not even root's: Kaniko then changes its identity, which needs SETUID and SETGID.
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

# pip compiles what it installs even where PYTHONDONTWRITEBYTECODE is set. Measured with langgraph: 4 s more
# while building, and every run imports it in 0.7 s instead of 1.9 s.
# PIP_BREAK_SYSTEM_PACKAGES: the base may be a distribution whose Python is marked as externally managed.
_PIP = """\
HOME=/root PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1{more} \\
    python3 -m pip install --no-input --no-cache-dir --progress-bar off --compile {arguments}"""

# Kaniko sees the pod's volume at /workspace and keeps it out of every layer, whereas what a COPY brought in
# stays in its layer for ever. A builder without the volume needs bind mounts of these two directories.
TREE, WHEELS = "/workspace/tree", "/workspace/wheels"
# By the environment, since pip hands it on to the pip that installs what building a project takes.
_OFFLINE = f" PIP_NO_INDEX=1 PIP_FIND_LINKS={WHEELS}"
# Tools that ask git for a project's version find no repository here.
_VERSIONS = " SETUPTOOLS_SCM_PRETEND_VERSION=0.0.0 PBR_VERSION=0.0.0"

_END = """\
WORKDIR /app
USER {id}:{id}
"""


def dockerfile(base_image: str, declaration: Declaration, trusted: str = "") -> str:
    """The text for Kaniko: the base, the user, the dependencies; nothing runs after the last USER.

    `base_image` is a reference as the installation configures it; `trusted` is a file in Kaniko's
    container with the authorities that pip is to trust, where they are not the base image's.
    """
    parts = [f"FROM {base_image}\n", _SYSTEM.format(id=CREW_ID), *_install(declaration, trusted)]
    parts.append(_END.format(id=CREW_ID))
    return "".join(parts)


def _install(declaration: Declaration, trusted: str) -> Iterator[str]:
    names = sorted(declaration.files())
    more = _OFFLINE if declaration.private_index else ""
    if trusted:
        more += f" PIP_CERT={trusted}"
    constraints = " -c /tmp/crewyard/constraints.txt" if "constraints.txt" in names else ""
    commands = []
    if declaration.lines:
        arguments = f"-r /tmp/crewyard/requirements.txt{constraints}"
        commands.append(_PIP.format(more=more, arguments=arguments))
    for directory in declaration.projects:
        place = f"{TREE}/{directory}".rstrip("/")
        # A command of its own: pins with hashes do not go together with a directory.
        commands.append(_PIP.format(more=more + _VERSIONS, arguments=f"{place}{constraints}"))
    if commands and names:
        yield f"COPY {' '.join(names)} /tmp/crewyard/\n"
        commands.append("rm -rf /tmp/crewyard")
    if commands:
        yield "RUN " + " \\\n    && ".join(commands) + "\n"
