"""Internet messages: building, parsing, header fields, and encodings (RFC 5322, RFC 2045 to 2049)."""
