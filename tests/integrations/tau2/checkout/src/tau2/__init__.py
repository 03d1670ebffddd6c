"""A stand-in with the module names and signatures that the adapter uses."""
