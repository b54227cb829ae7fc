"""Repairs of Keras, one a file, each with its upstream issue and a test that fails when upstream has repaired it."""
