"""What the authors released: its behaviour, its files, and the audit against its programs."""
