"""Reports between hosts: delivery status notifications, feedback reports, and TLS reports."""
