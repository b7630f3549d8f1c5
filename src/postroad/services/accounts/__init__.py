"""Accounts: registration, credits, the ledger as CSV, and statistics."""
