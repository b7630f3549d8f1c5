"""Messages as their account sees them.

Here are lookup and search (`lookup.py`), previews, downloads, retries, approvals, and the development inbox.
"""
