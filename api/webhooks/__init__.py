"""What git hosts tell by webhook: whether it is theirs, what it says, and what follows from it."""
