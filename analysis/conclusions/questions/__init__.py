"""The questions that designs ask, one module each: from observations to one answer."""
