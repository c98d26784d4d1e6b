"""What pages cost while trials run and when an experiment is large."""
