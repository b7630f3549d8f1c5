"""The operator console at `/operator`: pages about the whole installation.

`console.py` has its routes.
"""
