//! The exactly-once task loop, the offset store, the standalone herder and the auditor.
