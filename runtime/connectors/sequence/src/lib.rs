//! Numbers in a checkable pattern, at any rate and record size.
