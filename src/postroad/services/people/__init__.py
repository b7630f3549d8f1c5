"""Users, operators and programs: how they prove who they are, and what they may do."""
