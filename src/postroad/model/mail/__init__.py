"""A message as it is submitted: the request, its limits, its statuses, and simulated mail."""
