"""Scripts of the repository: the generated pages and the long runs."""
