"""How it is sent: provider queues with their connections, messages as they are loaded, attempts."""
