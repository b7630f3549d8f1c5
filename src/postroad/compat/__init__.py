"""The APIs of other services, at `/compat/<service>`: what their own packages send and expect, over our services.

Each service has a room of its own, a folder with a `room.py`. A room translates requests, responses and errors, and
decides nothing: everything goes through the same services as our own API, with the same keys, scopes, rates and limits.
"""
