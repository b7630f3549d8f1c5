"""Who may come in: authentication, users, passwords, tokens, sessions, credentials, keys."""
