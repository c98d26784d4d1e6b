"""Time inside MPI: what the shim counts in every rank, read and made into efficiencies. Pure."""
