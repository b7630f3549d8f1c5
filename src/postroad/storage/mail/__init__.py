"""Tables of mail: messages, the queue, results and counts, and what decides about sending.

`queue.py` has the claims.
"""
