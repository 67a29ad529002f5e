"""The one error of this package. Caught by the build pods, which report it, and by lint."""


class PlanError(Exception):
    """The source cannot be built as it is, and building it again would not help.

    `reason` is one of the stable words of a failed Deployment, `message` names
    file, key and (where known) line, `hint` says what to do next.
    """

    def __init__(self, reason: str, message: str, hint: str = "") -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
        self.hint = hint


CONFIG_INVALID = "ConfigInvalid"
ENTRYPOINT_NOT_FOUND = "EntrypointNotFound"
UNSUPPORTED_FRAMEWORK = "UnsupportedFramework"
DEPENDENCY_RESOLUTION = "DependencyResolution"
BUILD_FAILED = "BuildFailed"


def listed(words: list[str] | tuple[str, ...], limit: int = 10) -> str:
    """`words` as one readable text, cut after `limit` of them."""
    shown = ", ".join(words[:limit])
    return shown if len(words) <= limit else f"{shown} and {len(words) - limit} more"


def nearest(word: str, known: list[str] | tuple[str, ...]) -> str | None:
    """The one of `known` that `word` was probably meant to be, or None."""
    import difflib  # only needed once something is wrong

    found = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return found[0] if found else None
