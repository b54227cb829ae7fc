"""Training of one Keras model that is split into stages: where it is cut, where its variables are, and its steps."""
