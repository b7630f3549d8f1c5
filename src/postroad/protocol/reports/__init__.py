"""Reports that come back: delivery status notifications and feedback reports."""
