"""The only place that knows SQL: queries are named in `sql/*.sql` and declared in the module of their table."""
