"""What answers over the network: the live dashboard, and passhat as an evaluator of A2A agents."""
