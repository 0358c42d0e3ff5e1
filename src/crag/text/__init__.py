"""What the index and the web both read: HTML, PDF, encodings, hidden and untrusted text, URLs."""
