"""Recording packets while a trial runs: with dumpcap, with the test-bed's own ring, on other hosts."""
