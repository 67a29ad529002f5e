"""Deployments: builds of images from sources, by two kinds of pod."""
