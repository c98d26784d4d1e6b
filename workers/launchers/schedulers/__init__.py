"""Schedulers: one queue, one launcher, and a login for schedulers without steps in jobs."""
