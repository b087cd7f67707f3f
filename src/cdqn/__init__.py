"""C-DQN, the convergent deep Q network of Wang & Ueda (ICLR 2022), with DQN and RG beside it."""

__version__ = "0.1.0"
