"""The queue as operators see it: what waits, why, and what to do about it."""
