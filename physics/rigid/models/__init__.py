"""What mechanisms are: `layout` (what is where), `model` (its numbers), `read` (from MuJoCo's)."""
