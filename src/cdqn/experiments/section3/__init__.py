"""Section 3: cliff walking (figures 1, 2 and 3) and the condition numbers of the MSBE."""
