//! What damage has cost, and the cheapest way back: from the findings of a check to an ordered plan.

// Indexing is used only where an earlier test proved the place; each such line says which.
#![warn(clippy::indexing_slicing)]
