//! The offsets file of at-least-once standalone mode.
