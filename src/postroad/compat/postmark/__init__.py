"""Postmark's API, at `/compat/postmark`."""
