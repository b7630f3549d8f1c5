"""Listener: bounces and complaints that come back to return paths, and mail to routes and postmaster, over SMTP.

`return_paths.py` answers each verb.
"""
