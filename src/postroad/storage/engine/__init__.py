"""Stores on SQLite and PostgreSQL behind one interface (`store.py`).

Here are transactions, named queries, group commit, migrations and backups.
"""
