"""DKIM signatures, made in processes of their own (`signer_pool.py`), with the key of the sender domain."""
