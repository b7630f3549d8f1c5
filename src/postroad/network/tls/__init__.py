"""Certificates and handshakes, as a server and as a client, and the ACME client."""
