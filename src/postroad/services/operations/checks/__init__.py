"""Checks of an installation: what `postroad doctor` prints, and every process repeats hourly.

`table.py` lists them.
"""
