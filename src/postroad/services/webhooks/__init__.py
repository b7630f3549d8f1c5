"""Webhooks as their account manages them: endpoints, the delivery log, replays, listeners.

`signed_requests.py` makes one attempt, for the engine and for pings.
"""
