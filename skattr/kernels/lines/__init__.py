"""Walks along lines through a ReLU network: every kink of its output, in order.

**What a walk is.** Pin all columns of a row but one: the network becomes a function of one number
u, piecewise linear. A walk starts at u = 0 and goes to the right, another one to the left. *Events*
of a layer are the u where its inputs have kinks. Between two events each unit of the layer is
linear, with a value y and a slope s, and passes 0 at most once: it *flips*. The events of the next
layer are those of this one and its flips. At the events of the last layer, and where its units
flip, the output has *knots*: u, and by how much its slopes rise there.

**Who calls whom.** `engines/relu/line_walks.py` brings a network into the form of
`buffers.Units` and, for some rows and one column at a time,

1. `starts` finds the units at u = 0, and where those of the first layer flip;
2. `walk.walk_lines` (or `walk_one_layer`) walks along each line, in both directions:
   `_first_events` writes the events of layer 2, `_plan` what happens at them; for every layer but
   the last `units.walk_layer` writes the events of the next one, and `products.multiply` its
   slopes where all of them change; `units.walk_last_layer` appends knots;
3. `sums` puts the knots of all rows in order and adds them up to one curve.

`vectors` are the machine's vectors, eight numbers at a time, `keys` whole numbers that sort like
floats. Modules import only from those further down: walk → units → buffers → products → vectors;
starts and sums → keys and vectors.

**Data.** `buffers` names every array, with shapes. All layers stand one behind the other: M is the
number of all hidden units, m and p are the widths of a layer and of the one before, k the number of
outputs. Flat arrays hold rows of m numbers; `rows` starts with the transposed weights of layers 2,
3, …, and goes on, from `end`, with slopes that are computed on the way. An event says which of
these rows is added to the slopes, times which factor, and whether what was there is kept.

**What is not checked.** `load`, `store` and `number` look at no bounds. They rely on this:

- widths of layers are multiples of UNITS (16), so that eight or sixteen units are never cut off;
- arrays of events are BLOCK longer than what is asked for, as four events are passed at a time and
  those behind the last do nothing; `rows` and `returned` have BLOCK rows more for the same reason,
  and `products.multiply` writes up to three rows beyond its last;
- `rows` has at most one row for each event, and one for the slopes behind the last;
- `walk_layer` stops, and says so, if four events and all flips between them may not fit into the
  events of the next layer; `walk_lines` stops if a line may have more knots than fit. The caller
  makes the buffer twice as large and goes on with that line.
"""
