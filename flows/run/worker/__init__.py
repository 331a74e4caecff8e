"""What happens on a worker: its workspace, the tasks that it runs, and how it is known to be fit for them."""
