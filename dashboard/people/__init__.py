"""People: their account, tokens, projects, invitations, share links, and what they changed."""
