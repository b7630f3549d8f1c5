"""Mail that accounts receive: routes, what arrives at them, and links to its files.

`receive.py` is where a mail arrives, `routes.py` what people manage.
"""
