"""Door: mail that comes back to return paths, over SMTP."""
