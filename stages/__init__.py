"""What happens to one block of trials, stage by stage; pure but for `infer.wire` and `infer.batch.wire`."""
