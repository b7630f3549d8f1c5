"""Sender domains and the host: DNS records, verification, warm-up."""
