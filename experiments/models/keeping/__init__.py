"""What people do to keep order among experiments: put away, tag, delete, and take back."""
