"""What the store refuses, by what the caller should answer."""


class StoreUnavailable(Exception):
    """The store cannot answer now (locked, disk full, closed): 503 with Retry-After. Nothing was changed."""


class Refused(Exception):
    """The store refuses this for good. `field` names what is wrong, where it is one thing."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class Missing(Refused):
    """What was named is not there (404)."""


class Taken(Refused):
    """It was done before, with something else (409)."""


class TooLarge(Refused):
    """More bytes than allowed (413)."""


class Mismatch(Refused):
    """The bytes are not those that were announced: size or sha256 differ (400, or 422 for pods)."""


class Full(Exception):
    """A project's uploads have `held` of at most `most` bytes, and no room for this one (429)."""

    def __init__(self, held: int, most: int) -> None:
        super().__init__(f"{held} of {most} bytes are in use")
        self.held, self.most = held, most
