"""Sign-in of users by the installation's OpenID provider."""
