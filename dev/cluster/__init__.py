"""Parts that all kinds of dev cluster share: selection, installation of Crewyard, rollout."""
