"""Users, operators and programs.

`authentication.py` and `logins.py` say how they prove who they are, `grants.py` what they may grant to others.
"""
