"""Running an installation: checks, maintenance, notices, jobs, certificates, TLS reports."""
