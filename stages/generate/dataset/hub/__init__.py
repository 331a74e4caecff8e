"""Data sets on the Hugging Face Hub: their rows are fetched once, and are a file with a digest from then on."""
