"""What one account can do to another: `make fairness`."""
