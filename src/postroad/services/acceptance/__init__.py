"""Accepting mail: validation, composition, limits, and the one transaction that stores a message."""
