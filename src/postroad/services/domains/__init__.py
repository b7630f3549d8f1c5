"""Sender domains: registration, DNS checks, monitoring, SPF, and warm-up."""
