"""Deployments: from a source to an image, by two kinds of pod."""
