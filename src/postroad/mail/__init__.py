"""What runs for each message.

It is accepted (`accept/submit.py`) and signed; its results are recorded (`results/outcomes.py`) and reported as events
(`outbox.py`).
"""
