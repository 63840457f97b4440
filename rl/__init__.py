"""Reinforcement learning whose whole loop stays on the device."""
