"""tracewh: a SQL-centric trace warehouse for JAX training runs."""

__version__ = "0.1.0"
