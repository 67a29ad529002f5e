"""The three custom resources and the definitions that API and controller share."""
