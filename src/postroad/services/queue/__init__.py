"""The queue for operators and accounts: what waits and why, retry and cancel."""
