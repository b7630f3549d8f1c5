"""The JSON API over HTTP.

Begin with `emails.py`, which takes and reads mail; the documentation in `openapi.py` is made of the same route tables
and structs that validate requests.
"""
