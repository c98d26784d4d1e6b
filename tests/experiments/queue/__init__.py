"""The queue: fair share, claims and quotas."""
