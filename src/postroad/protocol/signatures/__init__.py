"""Signatures: DKIM (made and verified), webhooks, and the answers of passkeys."""
