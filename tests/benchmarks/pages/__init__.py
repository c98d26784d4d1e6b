"""What pages cost, and what they cost the trials beside them."""
