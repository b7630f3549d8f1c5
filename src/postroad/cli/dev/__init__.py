"""Commands for development: the whole service with demo data, and a webhook endpoint."""
