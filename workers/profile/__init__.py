"""What is loaded into a rank to see its time inside MPI: made of one table, built once per architecture."""
