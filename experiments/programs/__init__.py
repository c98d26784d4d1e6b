"""Small programs that Rankwire itself runs on the ranks; each is one file that its workload ships with the inputs of a trial."""
