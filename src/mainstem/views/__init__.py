"""Tables of the log, served: materialised in PostgreSQL, pulled by query, pushed as changes."""
