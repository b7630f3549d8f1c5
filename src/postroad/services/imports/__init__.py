"""What an account has at another service, read over its API (`resend.py`, `postmark.py`) and created here."""
