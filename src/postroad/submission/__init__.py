"""Listener: mail that customers submit over SMTP (RFC 6409)."""
