"""Formats and protocols, pure: bytes to values and back, without knowledge of the product."""
