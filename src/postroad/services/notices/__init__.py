"""Notices by mail: what Postroad itself tells operators, owners and other people (docs/notices.md).

In the order in which a notice goes through them: `kinds.py` is the table of kinds; `outbox.py` writes a notice in the
transaction of what it reports; `watch.py` writes those that nothing but time causes; `sender.py` finds out who gets it
and sends it; `rendering.py` renders it from the templates in `texts/`; `choices.py` is what people have chosen to get.
"""
