"""Network what-if: predictions of a program on other networks."""
