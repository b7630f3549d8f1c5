"""DKIM signatures of outgoing mail, the processes that compute them, and the keys of sender domains."""
