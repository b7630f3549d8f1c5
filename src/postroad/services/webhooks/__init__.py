"""Webhooks: the outbox of events, the endpoint and its secrets, attempts, the delivery log, and replays."""
