"""The suppression list of an account, entry by entry and as CSV."""
