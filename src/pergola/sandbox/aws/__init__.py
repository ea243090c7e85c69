"""A simulated AWS: moto, with the behaviour of AWS that it lacks; needs the extra `testing`."""
