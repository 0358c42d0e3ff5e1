"""What the released programs do otherwise, and the comparison with them."""
