"""The controller: makes the cluster follow Projects, Deployments and Runs."""
