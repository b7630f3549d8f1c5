"""Signatures: DKIM, webhooks, passkeys."""
