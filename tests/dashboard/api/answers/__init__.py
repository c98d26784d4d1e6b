"""What REST answers with, and what its document promises of it."""
