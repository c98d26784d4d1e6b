"""Telling people what happened: from events to the outbox, and from there by mail and webhook."""
