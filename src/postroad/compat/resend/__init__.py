"""Resend's API, at `/compat/resend`."""
