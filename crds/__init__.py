"""The contract: the three kinds and what api and controller share about them."""
