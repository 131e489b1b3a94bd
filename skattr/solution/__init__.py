"""Solutions: a model that was read, the terms of a measure with their engines, and their sum."""
