"""Every speed claim of the package: ``python -m benchmarks NAME`` prints one table."""
