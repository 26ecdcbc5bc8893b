//! The worker's properties file, as several commands take it.

use crate::exit::Stop;
use oncewire_worker::config::properties::{Properties, read_properties};
use std::path::Path;

/// Reads the file. Two files in the wrong order are told as such: of the missing properties a person would learn less.
pub(crate) fn read_worker(path: &Path) -> Result<Properties, Stop> {
    let properties = read_properties(path).map_err(|error| Stop::usage(error.to_string()))?;
    if properties.contains_key("connector.class") && !properties.contains_key("key.converter") {
        return Err(Stop::usage(format!(
            "{}: holds 'connector.class' and no 'key.converter', so it is a connector's file; the worker's properties come first",
            path.display()
        )));
    }
    Ok(properties)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connectors_file_is_not_taken_for_the_workers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.properties");
        std::fs::write(&path, "name=c\nconnector.class=FileStreamSource\n").unwrap();
        let stop = read_worker(&path).unwrap_err();
        assert!(stop.exit.code() == 2 && stop.message.contains("the worker's properties come first"), "{stop:?}");
        std::fs::write(&path, "key.converter=x\nconnector.class=FileStreamSource\n").unwrap();
        assert_eq!(read_worker(&path).unwrap().len(), 2);
    }
}
