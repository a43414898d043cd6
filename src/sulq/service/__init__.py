"""The curator as a service: web, clerk and workers as processes of their own, and who keeps them running."""
