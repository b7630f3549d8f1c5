"""Bytes and values, pure: formats and protocols that know nothing of the product."""
