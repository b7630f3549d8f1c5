"""Listener: bounces and complaints that come back to return paths, over SMTP."""
