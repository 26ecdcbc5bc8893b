//! The plug-ins of this binary: one line for each crate that brings some.

use oncewire_api::plugin::PluginRegistry;

/// All connectors and converters.
pub(crate) fn registry() -> PluginRegistry {
    PluginRegistry::new(
        oncewire_plugins::converters()
            .into_iter()
            .chain([oncewire_connector_file::plugin(), oncewire_connector_sequence::plugin()]),
    )
}
