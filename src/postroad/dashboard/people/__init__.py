"""Pages about people: login and its second steps (`login.py`), the profile, the team."""
