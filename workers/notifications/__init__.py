"""Notifications: from events to the outbox, and from there to mail and webhooks."""
