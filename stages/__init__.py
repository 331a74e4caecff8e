"""What happens to one block of trials: generate, infer, process, score, analyze. Pure but for `infer.client`."""
