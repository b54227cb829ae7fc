"""How a spec will be carried out: pure functions from spec and facts to a plan that can be printed."""
