"""Door: pages for a browser. What it does goes through the services that the API uses; pages work without scripts.

Read `door.py` (what all pages share), `visits.py` (one request of somebody who is logged in), then any page.
"""
