"""A crew's Dockerfile as the first part of its dependency image's. Called by plan.packages.dockerfile."""

from collections.abc import Iterator, Sequence

from .instruction import Instruction
from .read import BaseDockerfile

WRONG_PYTHON = "crewyard: the Dockerfile's image has Python"
"""Start of the line that the builder prints where the Python is missing or another one."""

# An image's USER, which Kaniko cannot become, is replaced by none: a variable without a value.
_NO_USER = "USER ${CREWYARD_NO_USER}\n"
# Nothing of the image is in the way of what follows: neither its shell nor files where the crew's will be.
_PREPARE = """\
SHELL ["/bin/sh", "-c"]
RUN found=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || found=none; \\
    [ "$found" = {python} ] || {{ echo "{wrong} $found, not {python}"; exit 1; }}; \\
    rm -rf /app/artifacts /opt/crewyard
"""


def base_instructions(base: BaseDockerfile, python: str, apt_settings: str) -> Iterator[str]:
    """Yield the crew's instructions and the check of its Python; `apt_settings` go before a stage's RUN."""
    for stage in _stages(base.instructions):
        runs = any(each.word == "RUN" for each in stage)
        for each in stage:
            yield f"{each.text}\n"
            if each.word == "FROM" and each.image:
                yield _NO_USER
            if each.word == "FROM" and runs:
                yield apt_settings
    yield _PREPARE.format(python=python, wrong=WRONG_PYTHON)


def _stages(instructions: Sequence[Instruction]) -> Iterator[list[Instruction]]:
    """Yield the instructions of each stage, after those before the first FROM."""
    stage: list[Instruction] = []
    for each in instructions:
        if each.word == "FROM":
            yield stage
            stage = []
        stage.append(each)
    yield stage
