"""Requests: query strings, concurrency limits, idempotency, downloads and errors."""
