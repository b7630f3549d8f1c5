"""What is measured: Postroad on its two stores, and the mail servers beside it."""
