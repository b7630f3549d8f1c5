"""Records in DNS that mail depends on: SPF, DKIM, DMARC, MTA-STS."""
