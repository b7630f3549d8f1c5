"""Logs (one JSON object a line, no content of mail) and metrics (the table is `metrics.py`)."""
