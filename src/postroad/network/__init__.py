"""The only place that opens sockets.

`listener.py` is what all listeners share: who may connect, and how they stop.
"""
