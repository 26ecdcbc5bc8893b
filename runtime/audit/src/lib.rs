//! The exactly-once auditor.
