"""DKIM signatures, made in processes of their own."""
