"""The command line of the library: `python -m analysis`."""
