"""The Spark engine: rows prepared on a cluster as integers, summed there by the kernels every engine shares."""
