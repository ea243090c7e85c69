"""Commands about the Garden of a landscape."""
