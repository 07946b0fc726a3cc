"""A release on a Spark cluster: the same kernels, the same bytes."""
