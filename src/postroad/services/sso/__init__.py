"""Single sign-on with OpenID Connect: for the installation, and for an account by its email domains.

In order: `providers.py` (discovery, keys, the exchange of a code), `id_tokens.py` (what a token must prove),
`connections.py` (what an owner sets up), `flow.py` (from the login page to the provider and back), `people.py` (whose
login it is, and in which role) and `rules.py` (who may still use a password). Reasons:
docs/decisions/0027-single-sign-on.md.
"""
