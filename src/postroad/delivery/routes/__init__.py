"""The hosts of a domain and how to reach them: MX, addresses, TLS policies, source addresses."""
