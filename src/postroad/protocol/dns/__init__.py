"""DNS records that mail depends on: SPF, DKIM, DMARC, MTA-STS, TLS-RPT; and which answers are too costly to parse."""
