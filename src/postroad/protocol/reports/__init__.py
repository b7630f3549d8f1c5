"""Reports between hosts: bounces (DSN), complaints (ARF), and aggregate reports about DMARC and TLS."""
