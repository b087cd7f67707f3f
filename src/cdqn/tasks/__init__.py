"""What is to be learned, as mathematics and data: no Gymnasium, no PyTorch."""
