"""What an account has at another service: extensions read it over its API, and it is created here."""
