"""The webhook engine: claim deliveries, sign, send, record.

The slots of each account and the retry schedule are in `model/events/webhook_schedule.py`, one attempt in
`services/webhooks/signed_requests.py`.
"""
