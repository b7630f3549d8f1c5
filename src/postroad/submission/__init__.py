"""Door: mail that customers hand in over SMTP."""
