"""Users: account, tokens, projects, invitations, notifications, log of changes."""
