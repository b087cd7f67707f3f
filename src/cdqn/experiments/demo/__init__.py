"""The demo: DQN diverges on data on which C-DQN does not."""
