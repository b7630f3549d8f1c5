"""Notices by mail: what Postroad itself tells operators, owners and other people (docs/notices.md).

`sender.py` sends what events and `watch.py` have queued.
"""
