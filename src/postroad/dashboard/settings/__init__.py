"""Pages that set up sending: domains, credentials, webhooks; credits and the audit log of an account."""
