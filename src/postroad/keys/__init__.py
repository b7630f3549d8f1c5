"""The installation key: what is derived from it, and what is encrypted with it."""
