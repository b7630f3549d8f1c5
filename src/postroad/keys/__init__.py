"""The installation key: what is derived from it, and what is encrypted with it.

Nothing else holds a secret in the clear.
"""
