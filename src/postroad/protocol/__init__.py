"""Formats and protocols, pure: bytes to values and back, without knowledge of the product, of time or of sockets."""
