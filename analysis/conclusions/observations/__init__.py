"""What single kinds of experiment come to: load tests, ladders of changes, transfer times, phases, price. Pure."""
