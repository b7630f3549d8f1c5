"""Webhook events: their JSON, formats, URLs and schedule."""
