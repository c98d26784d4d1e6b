"""Capture files to packet tables: sources, formats, decoder, stream."""
