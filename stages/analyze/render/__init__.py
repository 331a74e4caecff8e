"""Tables, charts and pages made of results."""
