"""Programs that send mail as fast as they are answered, and count what was answered."""
