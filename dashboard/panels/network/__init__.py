"""Network what-if: what another network would give a program, from the model that its trials bear."""
