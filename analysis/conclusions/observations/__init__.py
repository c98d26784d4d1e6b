"""Numbers with intervals that conclusions rest on, and what single kinds of experiment come to. Pure."""
