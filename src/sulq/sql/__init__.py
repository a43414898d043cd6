"""SQL to questions, and released numbers to the rows of the SELECT: the free half, from public facts alone."""
