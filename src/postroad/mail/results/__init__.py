"""What became of a message.

`outcomes.py` is the only way to record a result; bounces and complaints that come later, and the bounce guard, are
beside it.
"""
