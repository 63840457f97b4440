"""Where a mechanism is, what moves it, and how fast."""
