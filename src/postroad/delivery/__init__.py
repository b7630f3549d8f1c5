"""The delivery engine: route scheduled queues, claim what can be sent, send, record.

Read it in this order: `engine` (what runs), `dispatcher` (routes, and which recipients are next), `provider_queue`
and `permits` (concurrency and rate), `attempter` (what is sent, host after host), `recorder` (the results). `routing`
finds the hosts of a domain, with `host_addresses` and `tls_choice`; `controls` is what operators hold, pause and limit.
"""
