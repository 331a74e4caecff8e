"""The bundled tasks, one module each."""
