"""The mailbox simulator of `postroad dev`: a real SMTP server on loopback that stands in for remote mail hosts."""
