"""What a Garden is: its landscape, its components, and the rules for it; knows no controller."""
