"""Notices by mail: what Postroad itself tells operators, owners and other people (docs/notices.md)."""
