"""Who calls, and what they may do: `callers.py` has the one table of roles, permissions and scopes."""
