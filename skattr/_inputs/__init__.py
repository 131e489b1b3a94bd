"""What the user gives: tables, values, models and parameters, read and checked."""
