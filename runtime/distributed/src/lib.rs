//! The distributed herder: group, topics, REST and worker put together.
