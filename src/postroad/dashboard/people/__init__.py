"""Pages about people: login and its second steps, the profile, the team."""
