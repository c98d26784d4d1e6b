"""The guides of docs/ as pages: read, linked with each other, and searched."""
