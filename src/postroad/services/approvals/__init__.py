"""Sends above the approval limit of an API key: stored, and sent when a person approves them."""
