"""A campaign that tries to break skattr: `python -m campaign`, a table as its last output.

Parts, any of which `--only` selects:

- `oracle`: random models, measures, weights and groups against the definition;
- `strings`: two hundred hostile strings in every place of a report;
- `inputs`: a hundred bad inputs, with their messages;
- `faults`: kill -9, a full disk, a target that is read-only, an interrupt, in everything that
  computes or writes: the old file stays and the object can be used;
- `workers`: threads, fork, spawn, loky, threading and dask give the same bits;
- `growth`: time and memory by rows, trees, columns, levels, classes and depth, with exponents;
- `memory`: many rows explained, in bytes beyond input and output.
"""
