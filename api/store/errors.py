"""Errors of the store, each with the HTTP status it maps to."""


class StoreUnavailable(Exception):
    """The store cannot answer now (locked, disk full, closed): 503 with Retry-After. Nothing was changed."""


def cannot_answer(error: Exception) -> StoreUnavailable:
    """Return the error of a store whose engine raised `error`."""
    return StoreUnavailable(f"the index cannot answer: {type(error).__name__}: {error}")


class StoreRefused(Exception):
    """The store rejects the request permanently. `field` names the wrong field, if it is a single one."""

    status = 400

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class Missing(StoreRefused):
    """The named record does not exist."""

    status = 404


class StoreConflict(StoreRefused):
    """The same operation was done before with other data."""

    status = 409


class TooLarge(StoreRefused):
    """More bytes than allowed."""

    status = 413


class Mismatch(StoreRefused):
    """The bytes differ from the announced size or sha256 (400; 422 for pods)."""


PROJECT_OWNER = "the project"


class UploadQuotaExceeded(Exception):
    """The uploads of `owner` use `used` of at most `limit` bytes; this one does not fit (429)."""

    def __init__(self, used: int, limit: int, owner: str = PROJECT_OWNER) -> None:
        super().__init__(f"{used} of {limit} bytes are in use by the uploads of {owner}")
        self.used, self.limit, self.owner = used, limit, owner
        self.setting = "CREWYARD_KEPT_UPLOADS" if owner == PROJECT_OWNER else "the limit uploads_bytes"
