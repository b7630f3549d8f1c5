"""Who sent a mail that came in: SPF, DKIM, DMARC and ARC. Begin in `authenticate.py`."""
