"""The Dockerfile of a dependency image. Called by plan.keys and by the dependencies pod."""

from plan.dependencies import Declaration

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
_INSTALL = """\
COPY {files} /tmp/crewyard/
RUN HOME=/root PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 \\
    python3 -m pip install --no-input --no-cache-dir --progress-bar off --compile {arguments} \\
    && rm -rf /tmp/crewyard
"""

_END = """\
WORKDIR /app
USER {id}:{id}
"""


def dockerfile(base_image: str, declaration: Declaration) -> str:
    """The text for Kaniko: the base, the user, the dependencies; nothing runs after the last USER.

    `base_image` is a reference as the installation configures it.
    """
    parts = [f"FROM {base_image}\n", _SYSTEM.format(id=CREW_ID)]
    names = sorted(declaration.files())
    if "requirements.txt" in names:
        arguments = "-r /tmp/crewyard/requirements.txt"
        if "constraints.txt" in names:
            arguments += " -c /tmp/crewyard/constraints.txt"
        parts.append(_INSTALL.format(files=" ".join(names), arguments=arguments))
    parts.append(_END.format(id=CREW_ID))
    return "".join(parts)
