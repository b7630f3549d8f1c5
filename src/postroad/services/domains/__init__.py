"""Sender domains: registration (`domain_registry.py`), DNS checks, keys and their rotation."""
