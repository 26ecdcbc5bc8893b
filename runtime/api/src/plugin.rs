//! Plug-ins: what a worker can load by name.
//!
//! A name is the full class name that Kafka Connect uses, its last part, or that part without its kind (`FileStreamSource` for
//! `org.apache.kafka.connect.file.FileStreamSourceConnector`), so that a configuration that works with Java works here. A short name that
//! fits two plug-ins of a kind names neither.

use std::fmt;

use crate::{ConfigDef, Converter, SourceConnector};

/// What a plug-in is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PluginKind {
    /// A source connector.
    Source,
    /// A converter for keys and values; serves for headers too.
    Converter,
    /// A converter for the values of headers only.
    HeaderConverter,
}

impl PluginKind {
    /// The name in `GET /connector-plugins`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Converter => "converter",
            Self::HeaderConverter => "header_converter",
        }
    }

    /// What the short name leaves off.
    fn suffix(self) -> &'static str {
        match self {
            Self::Source => "Connector",
            Self::Converter => "Converter",
            Self::HeaderConverter => "HeaderConverter",
        }
    }
}

impl fmt::Display for PluginKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Makes an instance of a plug-in.
#[derive(Clone, Copy, Debug)]
pub enum PluginFactory {
    /// A source connector.
    Source(fn() -> Box<dyn SourceConnector>),
    /// A converter.
    Converter(fn() -> Box<dyn Converter>),
    /// A converter for the values of headers only.
    HeaderConverter(fn() -> Box<dyn Converter>),
}

/// One plug-in.
#[derive(Clone, Copy, Debug)]
pub struct Plugin {
    /// The full class name, as Kafka Connect writes it.
    pub class: &'static str,
    /// The version.
    pub version: &'static str,
    /// What it is for, in a line.
    pub summary: &'static str,
    /// Makes an instance.
    pub factory: PluginFactory,
}

impl Plugin {
    /// What it is.
    pub fn kind(&self) -> PluginKind {
        match self.factory {
            PluginFactory::Source(_) => PluginKind::Source,
            PluginFactory::Converter(_) => PluginKind::Converter,
            PluginFactory::HeaderConverter(_) => PluginKind::HeaderConverter,
        }
    }

    /// The last part of the class name.
    pub fn simple_name(&self) -> &'static str {
        self.class.rsplit(['.', '$']).next().unwrap_or(self.class)
    }

    /// The short names: the last part of the class name, and that without its kind.
    pub fn aliases(&self) -> Vec<&'static str> {
        let simple = self.simple_name();
        let pruned = simple.strip_suffix(self.kind().suffix()).filter(|name| !name.is_empty());
        std::iter::once(simple).chain(pruned).collect()
    }

    /// The properties of an instance.
    pub fn config_def(&self) -> ConfigDef {
        match self.factory {
            PluginFactory::Source(make) => make().config_def(),
            PluginFactory::Converter(make) | PluginFactory::HeaderConverter(make) => make().config_def(),
        }
    }

    fn answers_to(&self, name: &str) -> bool {
        self.class == name || self.aliases().contains(&name)
    }
}

/// Why a name stands for no plug-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginError {
    /// There is none of that name.
    Unknown {
        /// What was looked for.
        kind: PluginKind,
        /// The name.
        name: String,
        /// The short names that there are.
        known: Vec<&'static str>,
    },
    /// A short name fits more than one.
    Ambiguous {
        /// What was looked for.
        kind: PluginKind,
        /// The name.
        name: String,
        /// The classes that it fits.
        classes: Vec<&'static str>,
    },
}

impl fmt::Display for PluginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { kind, name, known } => {
                write!(f, "no {kind} plug-in named '{name}'; there are: {}", known.join(", "))
            }
            Self::Ambiguous { kind, name, classes } => {
                write!(
                    f,
                    "more than one {kind} plug-in is named '{name}'; write the full class name: {}",
                    classes.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for PluginError {}

/// The plug-ins of a worker.
#[derive(Clone, Debug, Default)]
pub struct PluginRegistry {
    plugins: Vec<Plugin>,
}

impl PluginRegistry {
    /// With these plug-ins.
    pub fn new(plugins: impl IntoIterator<Item = Plugin>) -> Self {
        Self { plugins: plugins.into_iter().collect() }
    }

    /// All plug-ins, in the order in which they were given.
    pub fn plugins(&self) -> &[Plugin] {
        &self.plugins
    }

    /// The plug-in that a name stands for.
    ///
    /// # Errors
    /// [`PluginError`] when there is none, or more than one.
    pub fn find(&self, kind: PluginKind, name: &str) -> Result<&Plugin, PluginError> {
        let name = name.trim();
        let of_kind = || self.plugins.iter().filter(|plugin| plugin.kind() == kind);
        if let Some(plugin) = of_kind().find(|plugin| plugin.class == name) {
            return Ok(plugin);
        }
        let fitting: Vec<&Plugin> = of_kind().filter(|plugin| plugin.answers_to(name)).collect();
        match fitting[..] {
            [plugin] => Ok(plugin),
            [] => Err(self.unknown(kind, name)),
            _ => {
                let classes = fitting.iter().map(|plugin| plugin.class).collect();
                Err(PluginError::Ambiguous { kind, name: name.into(), classes })
            }
        }
    }

    /// A new source connector of this name.
    ///
    /// # Errors
    /// As [`PluginRegistry::find`].
    pub fn source(&self, name: &str) -> Result<Box<dyn SourceConnector>, PluginError> {
        match self.find(PluginKind::Source, name)?.factory {
            PluginFactory::Source(make) => Ok(make()),
            _ => Err(self.unknown(PluginKind::Source, name)),
        }
    }

    /// A new converter for keys or values.
    ///
    /// # Errors
    /// As [`PluginRegistry::find`].
    pub fn converter(&self, name: &str) -> Result<Box<dyn Converter>, PluginError> {
        match self.find(PluginKind::Converter, name)?.factory {
            PluginFactory::Converter(make) => Ok(make()),
            _ => Err(self.unknown(PluginKind::Converter, name)),
        }
    }

    /// A new converter for the values of headers: one made for them, or any other converter.
    ///
    /// # Errors
    /// As [`PluginRegistry::find`].
    pub fn header_converter(&self, name: &str) -> Result<Box<dyn Converter>, PluginError> {
        match self.find(PluginKind::HeaderConverter, name) {
            Ok(Plugin { factory: PluginFactory::HeaderConverter(make), .. }) => Ok(make()),
            _ => self.converter(name),
        }
    }

    fn unknown(&self, kind: PluginKind, name: &str) -> PluginError {
        let known = self
            .plugins
            .iter()
            .filter(|plugin| plugin.kind() == kind)
            .filter_map(|plugin| plugin.aliases().pop())
            .collect();
        PluginError::Unknown { kind, name: name.into(), known }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(class: &'static str) -> Plugin {
        Plugin {
            class,
            version: "1",
            summary: "",
            factory: PluginFactory::Source(|| unreachable!("not made in this test")),
        }
    }

    #[test]
    fn a_plugin_answers_to_its_class_its_simple_name_and_its_short_name() {
        let registry = PluginRegistry::new([plugin("org.example.FileStreamSourceConnector")]);
        for name in ["org.example.FileStreamSourceConnector", "FileStreamSourceConnector", " FileStreamSource "] {
            assert!(registry.find(PluginKind::Source, name).is_ok(), "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_names_that_there_are() {
        let registry = PluginRegistry::new([plugin("org.example.FileStreamSourceConnector")]);
        let error = registry.find(PluginKind::Source, "FileSource").unwrap_err();
        assert_eq!(error.to_string(), "no source plug-in named 'FileSource'; there are: FileStreamSource");
        assert!(registry.find(PluginKind::Converter, "FileStreamSource").is_err());
    }

    #[test]
    fn a_short_name_of_two_plugins_names_neither() {
        let registry = PluginRegistry::new([plugin("a.XConnector"), plugin("b.XConnector")]);
        assert!(matches!(registry.find(PluginKind::Source, "X"), Err(PluginError::Ambiguous { .. })));
        assert!(registry.find(PluginKind::Source, "a.XConnector").is_ok());
    }
}
