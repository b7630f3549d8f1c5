"""What runs for each message: it is accepted, signed, and its results are recorded and reported."""
