"""What linear learners are made of: windows on numbers, scores of classes, and what noise of a known size calls for."""
