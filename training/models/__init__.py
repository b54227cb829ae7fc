"""The models that ship. They are also the examples: copy one, change it, name it in `model.entrypoint`."""
