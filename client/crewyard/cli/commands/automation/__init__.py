"""Commands of what happens without a person: schedules, notifications."""
