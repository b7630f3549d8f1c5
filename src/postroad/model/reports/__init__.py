"""What receivers report about a domain: daily rows, and whether its policy can become stricter."""
