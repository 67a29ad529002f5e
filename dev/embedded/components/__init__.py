"""The processes of the embedded node, one file each: settings in, a `Program` to run out."""
