"""Readers: the bytes of one source format in, Arrow tables out. They know formats, not analysis."""
