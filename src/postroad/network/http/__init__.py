"""HTTP/1.1 over sockets.

Begin with `http_server.py`; among the clients, `guarded_client.py` connects to permitted addresses only.
"""
