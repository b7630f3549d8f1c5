"""The way in for all mail.

Begin with `submit.py`, which checks and composes a message, then `transaction.py`, which accepts a group of them in one
transaction.
"""
