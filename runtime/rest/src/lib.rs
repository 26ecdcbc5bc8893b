//! The REST interface, its forwarding and its signatures, over a herder trait.
