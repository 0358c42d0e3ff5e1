"""Four ways to reach a reflecting model, or to do without one; each loads what it needs on use."""
