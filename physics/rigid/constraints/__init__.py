"""Forces that keep bodies apart, together and within limits."""
