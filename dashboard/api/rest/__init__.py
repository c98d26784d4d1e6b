"""How requests are read, signed, refused, paged and described, whatever they are about."""
