"""Special functions and the distributions that rest on them."""
