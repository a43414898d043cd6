"""Decision trees: how they are grown from noisy answers, routed by questions and drawn."""
