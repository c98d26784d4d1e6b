"""The words of conclusions: nothing else in this package writes a sentence; numbers in them are those of `wording.py`."""
