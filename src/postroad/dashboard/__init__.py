"""The dashboard: pages for a browser, on the same services as the API. Every page works without scripts.

Start with `application.py` (all routes), `requests.py` (an authenticated request), then any page.
"""
