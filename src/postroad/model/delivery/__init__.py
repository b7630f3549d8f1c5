"""Decisions of delivery: rates, retries, fair shares, providers and routes, TLS policies."""
