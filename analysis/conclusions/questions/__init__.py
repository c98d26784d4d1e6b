"""Questions of designs, one module each: from observations to one answer."""
