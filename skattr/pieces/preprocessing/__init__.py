"""From raw columns to the inputs of a model, through fitted steps that work column by column."""
