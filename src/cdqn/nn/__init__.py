"""Networks, and what is fast about training them."""
