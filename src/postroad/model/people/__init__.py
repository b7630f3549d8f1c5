"""Who calls, with which permissions and limits, and how logins are throttled."""
