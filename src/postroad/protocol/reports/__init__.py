"""Reports sent back by other hosts: delivery status notifications and feedback reports."""
