"""Reading of a crew's Dockerfile: what a build executes of it, and what is refused. Called by plan.make.

Every instruction is supported, has no effect (a note), or is refused with its line: the builder has no cache
between builds, no secrets, no build arguments, and may not become another user.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..errors import CONFIG_INVALID, PlanError, join_limited
from ..source import Files, text_of
from .copied import copied_paths
from .instruction import Instruction, instructions

MAX_BYTES = 64 << 10
MAX_INSTRUCTIONS = 500
MAX_PATH_LENGTH = 256
"""As of `spec.build.dockerfile`; it is in the plan, which must fit into a termination message."""
_MAX_DEFAULT_LENGTH = 512
_EXECUTED = ("FROM", "RUN", "COPY", "ADD", "ENV", "ARG", "LABEL", "WORKDIR", "SHELL")
# A run calls the crew as the crews' user, without a volume, and nothing is built on its image.
_WITHOUT_EFFECT = (
    *("USER", "CMD", "ENTRYPOINT", "EXPOSE", "HEALTHCHECK"),
    *("STOPSIGNAL", "VOLUME", "ONBUILD", "MAINTAINER"),
)
_FLAGS = {"COPY": ("from", "chown", "chmod"), "ADD": ("chown", "chmod")}
_PLATFORMS = ("$BUILDPLATFORM", "$TARGETPLATFORM", "${BUILDPLATFORM}", "${TARGETPLATFORM}")
_HERE_DOCUMENT = re.compile(r"<<-?[\"']?[A-Za-z_]")
_ESCAPE = re.compile(r"\s*#\s*escape\s*=", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::-([^}]*))?\})")
_STAGE = re.compile(r"(\S+)(?:\s+[Aa][Ss]\s+(\S+))?")
_PYTHON_TAG = re.compile(r"(?:^|/)python:(3\.\d{1,2})(?![\d.]*\d)|(?:^|/)python:(3\.\d{1,2})\.")
SCRATCH = "scratch"
# No layer contains what is there.
_BUILDERS_DIRECTORIES = ("/workspace/", "/kaniko/")


@dataclass(frozen=True)
class BaseDockerfile:
    """A crew's Dockerfile. `copied` are the files that it can copy; `notes` are lines for the build log."""

    path: str
    instructions: tuple[Instruction, ...]
    copied: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def images(self) -> tuple[str, ...]:
        """The images that it takes from registries."""
        return tuple(dict.fromkeys(each.image for each in self.instructions if each.image))

    @property
    def python(self) -> str | None:
        """The Python version that the tag of its last image names, such as python:3.12-slim; else None."""
        image, images = "", dict[str, str]()
        for each in self.instructions:
            if each.word == "FROM":
                # A stage begins with an image, or with an earlier stage.
                words = each.arguments.split() or [""]
                image = each.image or images.get(words[0], "")
                images[words[-1]] = image
        match = _PYTHON_TAG.search(image)
        return (match[1] or match[2]) if match else None


def read_base_dockerfile(files: Files, copyable: Files, path: str, origin: str) -> BaseDockerfile:
    """Return the Dockerfile `path` of the source `files`; only those of `copyable` reach the builder.

    `origin` is where `path` is configured, for messages. Raises PlanError(ConfigInvalid).
    """
    if len(path) > MAX_PATH_LENGTH:
        raise PlanError(
            CONFIG_INVALID, f"{origin} has {len(path)} characters", f"Use at most {MAX_PATH_LENGTH}."
        )
    if path not in files:
        raise PlanError(
            CONFIG_INVALID,
            f"{origin} is {path[:200]!r}, which is not a file of the source",
            "Write its path from the directory of the configuration, such as docker/Dockerfile.",
        )
    text = text_of(files, path, MAX_BYTES)
    if any(_ESCAPE.match(line) for line in text.splitlines()[:5]):
        raise _refused(path, 1, "another escape character is not supported", r"Use \ and remove that line.")
    found = list(instructions(text))
    if len(found) > MAX_INSTRUCTIONS:
        raise _refused(
            path, found[MAX_INSTRUCTIONS].line, f"more than {MAX_INSTRUCTIONS} instructions", "Join some."
        )
    left_out = dict.fromkeys(each.word for each in found if each.word in _WITHOUT_EFFECT)
    executed = tuple(_executed(path, found))
    if not any(each.word == "FROM" for each in executed):
        raise _refused(path, 1, "there is no FROM", "Start with an image that has Python.")
    ignored = f"{path}: ignored instructions: {join_limited(tuple(left_out))}"
    notes = (f"{ignored}; a run calls the crew as its own user",) if left_out else ()
    return BaseDockerfile(path, executed, copied_paths(copyable, path, executed), notes)


def _executed(path: str, found: Sequence[Instruction]) -> Iterator[Instruction]:
    """Yield what the builder executes. Raises PlanError for what it cannot."""
    defaults: dict[str, str] = {}
    stages: list[str] = []
    for each in found:
        if each.word in _WITHOUT_EFFECT:
            continue
        if each.word not in _EXECUTED:
            raise _refused(
                path,
                each.line,
                f"{each.word[:30]} is not supported",
                f"Supported are {', '.join(_EXECUTED)}.",
            )
        if not each.arguments:
            raise _refused(path, each.line, f"{each.word} has no arguments", "Complete or remove that line.")
        if each.word in ("RUN", "COPY", "ADD") and _HERE_DOCUMENT.search(each.arguments):
            raise _refused(
                path,
                each.line,
                "here-documents are not supported",
                "Write the commands with && on one line, or copy a script.",
            )
        if each.word == "FROM":
            each = _checked_from(path, each, defaults, stages)
        elif each.word == "ARG" and not stages:
            for name, value in _arguments(each).items():
                expanded = _expanded(value, defaults)
                # The name of an image is shorter; each may double the ones before it.
                defaults[name] = expanded if len(expanded) <= _MAX_DEFAULT_LENGTH else ""
        elif not stages:
            raise _refused(path, each.line, f"{each.word} is before FROM", "Only ARG may be before FROM.")
        elif each.word == "RUN":
            each = replace(each, flags=tuple(_run_flags(path, each)))
        else:
            each = _checked_copy(path, each, stages)
        yield each


def _checked_from(path: str, each: Instruction, defaults: dict[str, str], stages: list[str]) -> Instruction:
    """Return FROM with its image apart; add its stage to `stages`."""
    for name, value in each.flags:
        if name != "platform" or value not in _PLATFORMS:
            raise _refused(
                path,
                each.line,
                f"--{name}={value} is not supported",
                "Images are built for the nodes; omit it.",
            )
    match = _STAGE.fullmatch(each.arguments.strip())
    if match is None:
        raise _refused(
            path, each.line, f"FROM {each.arguments[:100]} is not valid", "Write FROM image AS name."
        )
    image = _expanded(match[1], defaults)
    if "$" in image or not image:
        raise _refused(
            path,
            each.line,
            f"the image {match[1][:200]} has a variable without a value",
            "Give the ARG before FROM a default: a build has no build arguments.",
        )
    own = image.lower() in stages or image == SCRATCH
    name = (match[2] or "").lower()
    stages.append(name)
    more = " ".join(filter(None, (image.lower() if own else "", f"AS {name}" if name else "")))
    return replace(each, flags=(), image="" if own else image, arguments=more)


def _arguments(each: Instruction) -> dict[str, str]:
    """Return the defaults of an ARG by name."""
    try:
        words = shlex.split(each.arguments)
    except ValueError:
        words = []
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def _expanded(text: str, defaults: dict[str, str]) -> str:
    """Return the text with the defaults of its variables."""
    return _VARIABLE.sub(lambda found: _default(found, defaults), text)


def _default(found: re.Match[str], defaults: dict[str, str]) -> str:
    """Return the default of a variable; the text itself where it has none."""
    return defaults.get(found[1] or found[2]) or found[3] or found[0]


def _run_flags(path: str, each: Instruction) -> Iterator[tuple[str, str]]:
    for name, value in each.flags:
        # A cache changes no result; there is none between builds.
        if name == "mount" and "type=cache" in value.split(","):
            continue
        raise _refused(
            path,
            each.line,
            f"RUN --{name}={value[:100]} is not supported",
            "COPY the files instead; a build has no secrets." if name == "mount" else "Remove that option.",
        )
    yield from ()


def _checked_copy(path: str, each: Instruction, stages: Sequence[str]) -> Instruction:
    """Return COPY or ADD with the image of --from= apart; others unchanged."""
    kept, image = [], ""
    for name, value in each.flags:
        if name == "link":
            continue
        if name not in _FLAGS.get(each.word, ()):
            raise _refused(path, each.line, f"{each.word} --{name} is not supported", "Remove that option.")
        if name != "from":
            kept.append((name, value))
        elif "$" in value or not value:
            raise _refused(
                path,
                each.line,
                f"--from={value[:100]} is neither a stage nor an image",
                "Write its name; variables have no value there.",
            )
        elif value.lower() in stages or value.isdecimal():
            kept.append((name, value.lower()))
        else:
            image = value
    if each.word in ("COPY", "ADD") and len(each.values()) < 2:
        raise _refused(path, each.line, f"{each.word} needs a source and a target", "Write both.")
    target = each.values()[-1]
    if each.word in ("COPY", "ADD", "WORKDIR") and f"{target}/".startswith(_BUILDERS_DIRECTORIES):
        raise _refused(
            path,
            each.line,
            f"{target[:100]} is a directory of the builder",
            "Choose another directory, such as /srv; the crew's own files go to /app.",
        )
    return replace(each, flags=tuple(kept), image=image)


def _refused(path: str, line: int, problem: str, hint: str) -> PlanError:
    return PlanError(CONFIG_INVALID, f"{path} line {line}: {problem}", hint)
