"""What keeps queued mail back: holds and source addresses, and the reasons in words (`wait_reasons.py`)."""
