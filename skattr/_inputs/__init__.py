"""User input: tables, values, models and parameters, read and checked."""
