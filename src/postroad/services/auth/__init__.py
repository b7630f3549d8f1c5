"""Authentication, users, passwords, tokens, sessions, credentials and API keys."""
