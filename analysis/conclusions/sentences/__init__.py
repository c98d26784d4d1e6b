"""The words of conclusions: no other module of this package writes a sentence."""
