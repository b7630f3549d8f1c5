"""The way in for all mail. Begin with `submit.py`, then `transaction.py`.

What happens to `POST /emails`, in order:

1. `network/http/http_server.py` reads a request with `http_messages.py` and hands it to `web/application.py`.
2. The application finds the route (`web/routing.py`), asks who it is (`api/authentication.py`, then
   `services/people/authentication.py` and its cache, `access_cache.py`), and reads the body (`web/request_reader.py`).
3. `api/emails.py` calls `submit.py`, the entry point for mail, whichever listener received it. It checks the fields in
   `validation.py`, hashes the request in `compose.py`, takes from the rate (`send_limits.py`), finds the sender domain
   in the cache, and asks `queue_limit.py` for room.
4. `compose.py` makes the MIME message, its rows and the response.
5. `storage/engine/group_commit.py` gathers what other requests submit meanwhile, and opens one transaction for all
   (`storage/engine/sqlite.py`).
6. `transaction.py` decides, under the locks of the accounts, and writes (`storage/people/accounts.py`,
   `storage/mail/messages.py`, `queue.py`, `mail_counts.py`).
7. When the commit is on disk, the response goes back through `web/routing.py` to the server.

`submit_mime.py` does the same for a finished message, `submit_batch.py` for many at once, and
`services/messages/resend.py` for a stored message. In a frontend, `writer_protocol.py` takes the place of the group
commit. `tests/test_walks.py` counts the files.
"""
