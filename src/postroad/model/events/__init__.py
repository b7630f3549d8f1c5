"""Webhook events: their members (`events.py`), and the schedule and shares of their delivery."""
