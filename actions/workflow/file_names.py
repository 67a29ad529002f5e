"""Names of files that must not be written into a checkout. Pure, standard library only.

Called by the API server, which stores no such artifact, and by the command line, which writes none. The
actions have the same file: `actions/workflow/file_names.py`.
"""

import re
import unicodedata

_REPOSITORY_DIRECTORIES = frozenset({".git", ".hg", ".svn", ".bzr", ".jj"})
"""Directories whose files tell a version control program which commands to execute."""
_SHORT_NAME = re.compile(r"(git|hg|svn|bzr|jj)~[0-9]+")
"""The other name that NTFS and FAT give such a directory."""
_WINDOWS_DEVICE = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
_WINDOWS_FORBIDDEN = re.compile(r'[<>:"\\|?*\x00-\x1f]')


def relative_path_problem(name: str) -> str | None:
    """Return why the name is not a relative path below a directory; None if it is one."""
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        return "it is not a relative path"
    return None


def checkout_problem(name: str) -> str | None:
    """Return why the name would change a checkout itself on some file system; None if it would not.

    File systems ignore case, some letters without width, trailing dots and spaces, and the name of a stream.
    """
    for part in re.split(r"[/\\]", name):
        folded = unicodedata.normalize("NFKC", part).casefold()
        visible = "".join(letter for letter in folded if unicodedata.category(letter) != "Cf")
        plain = visible.partition(":")[0].rstrip(" .")
        if plain in _REPOSITORY_DIRECTORIES or _SHORT_NAME.fullmatch(plain):
            return f"{part!a} is a directory of a version control program"
    return None


def windows_problem(name: str) -> str | None:
    """Return why Windows does not write the name as it is; None if it does."""
    parts = name.split("/")
    if _WINDOWS_FORBIDDEN.search(name) or any(
        _WINDOWS_DEVICE.fullmatch(part) or part[-1:] in (".", " ") for part in parts
    ):
        return "Windows does not allow this name"
    return None


def download_problem(name: str, windows: bool) -> str | None:
    """Return why an artifact of this name is not written into a directory; None if it is allowed."""
    return (
        relative_path_problem(name) or checkout_problem(name) or (windows_problem(name) if windows else None)
    )
