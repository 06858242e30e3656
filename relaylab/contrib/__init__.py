"""What lived in tvm.contrib: the visualizer, the graph executor, temporary folders, test helpers."""
