"""Postroad: a transactional email service that people run themselves."""

__version__ = "0.1.0"
