"""The mailbox simulator of `postroad dev`: a real SMTP server on loopback that stands for the rest of the world."""
