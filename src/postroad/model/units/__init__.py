"""Ids, cursors, times and addresses of hosts."""
