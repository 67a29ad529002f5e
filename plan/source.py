"""Source trees as lazy mappings from relative paths to bytes.

Used by all modules of this package; the build pods pass their checked tree, lint passes a directory.
"""

from collections.abc import Container, Iterator, Mapping

from .errors import CONFIG_INVALID, PlanError

Files = Mapping[str, bytes]

MAX_TEXT_BYTES = 1 << 20
_MAX_PATH_BYTES = 4095
_MAX_NAME_BYTES = 255
_MAX_DEPTH = 100
PATH_HINT = "Rename it or exclude it from the source."
"""The next step for a path with a problem."""


def path_problem(path: str) -> str | None:
    """Return why a source has no file of this path, written with `/`; None if it may have one.

    Absolute paths, parent references, and names that Linux or image layers do not allow.
    """
    if path.startswith("/") or "\\" in path or path[1:2] == ":":
        return "is absolute or does not use / as separator"
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        return "leaves the source"
    if any(ord(letter) < 32 or ord(letter) == 127 or 0xD800 <= ord(letter) <= 0xDFFF for letter in path):
        return "has control characters or is not UTF-8"
    if len(path.encode()) > _MAX_PATH_BYTES or any(len(part.encode()) > _MAX_NAME_BYTES for part in parts):
        return "is too long"
    if len(parts) > _MAX_DEPTH:
        return f"has more than {_MAX_DEPTH} levels"
    if any(part.startswith(".wh.") for part in parts):
        return "has a name that image layers reserve for deletions"
    return None


def text_of(files: Files, path: str, max_bytes: int = MAX_TEXT_BYTES) -> str:
    """Return the file `path`, of at most `max_bytes`, as text.

    Respects byte order marks, because PowerShell writes UTF-16 by default. Raises PlanError(ConfigInvalid)
    where the file is too large or not text.
    """
    data = files[path]
    if len(data) > max_bytes:
        raise PlanError(
            CONFIG_INVALID,
            f"{path} has {len(data)} bytes; at most {max_bytes} are read",
            f"Make {path} smaller.",
        )
    encoding = "UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "UTF-8"
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise PlanError(
            CONFIG_INVALID,
            f"{path} is not {encoding} text (byte {error.start})",
            f"Save {path} as UTF-8.",
        ) from None


def without_paths(files: Files, excluded: Container[str]) -> Files:
    """Return `files` without the paths in `excluded`."""
    return _FilteredFiles(files, [path for path in files if path not in excluded])


class _FilteredFiles(Mapping[str, bytes]):
    """A subset of `files`."""

    def __init__(self, files: Files, paths: list[str]) -> None:
        self._files, self._paths = files, dict.fromkeys(paths)

    def __getitem__(self, path: str) -> bytes:
        if path not in self._paths:
            raise KeyError(path)
        return self._files[path]

    def __contains__(self, path: object) -> bool:
        return path in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


class RepositoryFiles(Mapping[str, bytes]):
    """The files of a repository: `files` of the source, its directory `base`, and those `outside` of it.

    All paths are relative to the repository.
    """

    def __init__(self, files: Files, base: str = "", outside: Files | None = None) -> None:
        self._files, self.base = files, base
        # Not its truth: that would list the whole repository.
        self._outside: Files = {} if outside is None else outside
        self._prefix = f"{base}/" if base else ""

    def __getitem__(self, path: str) -> bytes:
        if path.startswith(self._prefix):
            return self._files[path.removeprefix(self._prefix)]
        return self._outside[path]

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, str):
            return False
        if path.startswith(self._prefix):
            return path.removeprefix(self._prefix) in self._files
        return path in self._outside

    def __iter__(self) -> Iterator[str]:
        yield from self.own_paths()
        yield from self._outside

    def own_paths(self) -> Iterator[str]:
        """Yield the paths of the source; of a large repository the others cannot be listed."""
        return (f"{self._prefix}{path}" for path in self._files)

    def __len__(self) -> int:
        return len(self._files) + len(self._outside)
