"""The management API under `/v1`, one module for each resource.

`resource.py` has what they share: routes, their scopes, pages of lists.
"""
