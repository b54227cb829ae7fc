"""What the user asked for: frozen models of the pipeline YAML and its loader. No other IO lives here."""
