"""Running an installation: checks, cleanup, notices, jobs, certificates, TLS reports."""
