"""Figures 4 to 7, 10, 11, 13 to 15 and Table 1: games that are learned online (Sec. 5, App. B.2 to B.5, E.2, E.3)."""
