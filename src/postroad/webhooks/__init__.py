"""The engine that tells customers' receivers what became of their mail: claim, sign, post, record.

Read it in this order: `engine` (what runs), `dispatching` (which deliveries next), `attempting` (what is under way),
`recording` (what became of it). How much each account may have is `model/webhook_concurrency.py`, when it is tried
again `model/webhook_schedule.py`, and one attempt itself `services/webhooks/attempt.py`.
"""
