"""Sulq side by side with every peer: each contender in its own environment and process, in turn, on one machine."""
