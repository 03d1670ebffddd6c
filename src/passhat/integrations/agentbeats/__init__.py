"""AgentBeats and A2A: passhat as an evaluator (green agent), battles and scenario files."""
