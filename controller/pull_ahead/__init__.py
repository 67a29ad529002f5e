"""Images pulled ahead: at activation, to the nodes that have run the project before."""
