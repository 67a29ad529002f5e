"""The index, one noun a file; each class runs its own transactions over `api.store.sql.database`."""
