"""Tables that leave as files: configurations with their medians, trials with everything measured, or one row per measurement."""
