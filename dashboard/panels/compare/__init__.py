"""Experiments next to each other: table, sentences and charts."""
