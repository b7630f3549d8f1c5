"""Commands that work on what an installation holds: accounts, people, domains, messages, the queue.

Most are requests to the API, over HTTP or in this process.
"""
