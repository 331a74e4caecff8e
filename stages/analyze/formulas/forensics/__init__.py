"""What trials took and when they ended: hazards over tokens, compression of traces, cost, Pareto fronts."""
