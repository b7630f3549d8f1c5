"""Listener: mail that customers submit over SMTP (RFC 6409).

`session.py` answers each verb.
"""
