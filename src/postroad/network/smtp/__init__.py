"""SMTP over sockets.

`smtp_server.py` and `smtp_connection.py` connect `protocol/smtp` to connections, with their timeouts.
"""
