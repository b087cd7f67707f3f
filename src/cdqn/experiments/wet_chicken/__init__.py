"""Figure 8: wet chicken, App. A.1."""
