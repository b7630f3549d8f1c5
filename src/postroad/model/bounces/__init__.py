"""Bounce classification.

`disposition.py` decides what a reply means, by the table in `rules.py`; `reasons.py` has the texts that people read.
"""
