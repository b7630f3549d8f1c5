"""What every HTTP door shares: routes as a table, reading requests, answering them, one log line each."""
