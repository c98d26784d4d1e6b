"""The form of registered programs, and the figures of a pasted output."""
