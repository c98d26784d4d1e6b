"""Who people are here: projects and their members, tokens, invitations, share links, what somebody saved."""
