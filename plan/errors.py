"""The error of this package, with helpers for its messages. Caught by the build pods and by lint."""


class PlanError(Exception):
    """The source cannot be built without a change; a retry does not help.

    `reason` is a stable reason of a failed Deployment, `message` names file, key and (where known) line,
    `hint` is the next step.
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


def join_limited(items: list[str] | tuple[str, ...], limit: int = 10) -> str:
    """Join `items` for a message, at most `limit` of them."""
    shown = ", ".join(items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit} more"


def closest_match(name: str, known: list[str] | tuple[str, ...]) -> str | None:
    """Return the entry of `known` that is most similar to `name`, or None."""
    import difflib  # only needed for errors

    matches = difflib.get_close_matches(name, known)
    return matches[0] if matches else None
