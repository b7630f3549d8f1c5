"""Accounts: registration (`account_registry.py`), credits and their ledger, statistics, views by operators."""
