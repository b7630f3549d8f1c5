"""DNS records that mail depends on: SPF, DKIM, DMARC, MTA-STS."""
