"""Figure 9 and the controllers beside it: cooling the quartic oscillator, App. B.1."""
