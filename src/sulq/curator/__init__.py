"""The trusted party: it turns a question into a noisy answer, and counts what that cost."""
