"""The engine that brings queued mail to its destinations: claim, route, send, record.

Read it in this order: `engine` (what runs), `dispatching` (which recipients next), `preparing` (what is sent), `pool`
(how much at once), `trying` (one message, host after host), `recording` (what became of it).
"""
