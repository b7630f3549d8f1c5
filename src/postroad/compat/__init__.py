"""The APIs of other services, at `/compat/<service>`: what their own packages send and expect, over our services.

Each service has a folder, whose `api.py` lists the routes. They translate requests, responses and errors, and
decide nothing: everything goes through the same services as our own API, with the same keys, scopes, rates and limits.
"""
