"""Time inside MPI: profiles of ranks, efficiencies, waits and their causes. Pure."""
