"""Ids, cursors and times; and in `destinations.py` the addresses that mail and webhooks may go to."""
