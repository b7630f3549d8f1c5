"""Daily reports of TLS results to recipient domains that ask for them (TLS-RPT, RFC 8460)."""
