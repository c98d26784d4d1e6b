"""From the bytes of a capture file to packet tables: sources, formats, decoder, stream."""
