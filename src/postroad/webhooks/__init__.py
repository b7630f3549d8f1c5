"""The webhook engine: claim deliveries, sign, send, record.

Read it in this order: `engine` (what runs), `dispatcher` (which deliveries are next), `attempter` (attempts under way),
`recorder` (the results), `endpoint_health` (what they say about endpoints). The slots of each account are in
`model/events/webhook_schedule.py`, the retry schedule in `model/events/webhook_schedule.py`, and one attempt in
`services/webhooks/signed_requests.py`.
"""
