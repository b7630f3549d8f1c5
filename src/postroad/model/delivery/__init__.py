"""Decisions of delivery: rates, retries, fair shares, providers, TLS policies.

`fair_shares.py` is the rule by which accounts share whatever is limited.
"""
