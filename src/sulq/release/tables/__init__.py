"""What contingency tables are made of: bases, coefficients, how they are asked, and what becomes of the answers."""
