"""Figures from plain rows; colours are names of CSS tokens."""
