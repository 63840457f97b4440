"""Binary."""
