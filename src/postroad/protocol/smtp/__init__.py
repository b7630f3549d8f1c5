"""SMTP without sockets: values, replies, the client's and the server's side of a session (RFC 5321)."""
