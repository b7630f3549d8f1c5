"""A message as it is submitted: the request (`send_request.py`), its limits, its statuses, and simulated mail."""
