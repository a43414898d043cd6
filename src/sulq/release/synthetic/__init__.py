"""What synthetic data is made of: the declared cells, what is asked of them, a model of the answers, and rows drawn."""
