"""Stores on SQLite and PostgreSQL: transactions, named queries, group commit, migrations, backups."""
