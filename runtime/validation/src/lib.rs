//! What is wrong with a connector's configuration, as Connect's validate endpoint tells it.
