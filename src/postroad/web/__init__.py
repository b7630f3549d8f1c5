"""The HTTP framework that the API and the dashboard share.

`application.py` serves a route table (`routing.py`), and parses requests and makes errors in one way.
"""
