"""Pages about mail: the overview, messages and what became of them, suppressions, approvals and templates.

Begin with `message_list.py`.
"""
