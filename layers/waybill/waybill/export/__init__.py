"""The exporters, and what the engine knows of them."""
