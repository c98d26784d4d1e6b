"""Profile library: counts a rank's time inside MPI; built per architecture."""
