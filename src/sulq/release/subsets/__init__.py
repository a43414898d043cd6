"""Statistics of few attributes on random subsets of the people, and what they tell of more attributes together."""
