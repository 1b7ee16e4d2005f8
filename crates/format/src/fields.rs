//! The catalogue of fields: name, place, width and meaning of every field of every structure, as data.
