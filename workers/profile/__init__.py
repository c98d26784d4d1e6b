"""Profile library: what a rank loads to count its time inside MPI; built once per architecture."""
