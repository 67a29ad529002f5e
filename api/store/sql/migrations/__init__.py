"""The index's schema over time, run by `api.store.sql.migrate`."""
