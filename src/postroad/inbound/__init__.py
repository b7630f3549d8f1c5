"""Listener: bounces and complaints that come back to return paths, and mail to routes and postmaster, over SMTP.

`session.py` answers each verb.
"""
