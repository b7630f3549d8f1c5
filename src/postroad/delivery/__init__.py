"""The delivery engine: claim queued recipients, route, send, record.

Read it in this order: `engine` (what runs), `dispatcher` (which recipients are next), `route_choice` and
`source_choice` (their route and source address), `message_loader` (what is sent), `provider_queue` and `job_capacity`
(concurrency and rate), `attempter` (one job, host after host), `recorder` (the results).
"""
