"""Commands that work on what an installation holds: accounts, people, domains, messages, the queue."""
