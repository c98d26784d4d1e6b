"""Users: projects, members, tokens, invitations, share links, saved views."""
