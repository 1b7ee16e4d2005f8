//! Expressions: what they give, what real catalogs hold, and texts made to hurt.

mod hostile;
mod inventory;
mod table;
mod values;
