"""Commands for development: the whole service with demo data (`service.py`), and a webhook endpoint."""
