"""Learning compared: the same rows, bounds, relation and spend for sulq, diffprivlib, interpret and scikit-learn."""
