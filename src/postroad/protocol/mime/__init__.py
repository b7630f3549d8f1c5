"""Internet messages (RFC 5322, RFC 2045 to 2049).

`address.py` is the one rule for addresses, `builder.py` writes messages, `message_parser.py` reads those of others.
"""
