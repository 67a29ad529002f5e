"""SQL engines of the index: SQLite and PostgreSQL, schema, migrations, locks, notifications."""
