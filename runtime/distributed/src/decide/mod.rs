//! The herder's decisions, pure: a state and an input give what to do. The loop in `herder` carries them out.

pub mod backoff;
pub mod fencing;
pub mod left_behind;
pub mod reconfigure;
pub mod restart;
pub mod session_key;
