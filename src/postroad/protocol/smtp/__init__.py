"""SMTP without sockets (RFC 5321).

`client.py` and `server.py` have their state tables at the top; `values.py` is what they exchange with the rest.
"""
