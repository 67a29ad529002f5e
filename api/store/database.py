"""The index's connections: one writer, readers apart. Called by the nouns of `api.store.index`."""


class Database:
    """The SQLite file behind the index."""
