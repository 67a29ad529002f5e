"""The dev cluster, whatever carries it: choice, installation of the service, rollout."""
