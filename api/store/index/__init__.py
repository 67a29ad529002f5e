"""Tables of the index, one per module; each class runs its own transactions over `api.store.sql.database`."""
