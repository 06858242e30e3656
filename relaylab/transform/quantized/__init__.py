"""The quantized dialect, lowered; and programs of fake quantization on integers."""
