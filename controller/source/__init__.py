"""Source polling: schedule, host limits, host back-off, the observed commit of a Project."""
