"""Schedulers: one queue, one launcher, a login for those without job steps."""
