"""What pages are made of.

Begin with `requests.py`, which checks session, role and CSRF token before a handler runs; then forms, the menu,
rendering, lists and code snippets.
"""
