//! One connector that streams a file through the standalone worker: its two properties files, its processes, and what must be true at the end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::binary::oncewire;
use crate::process::Process;

/// A worker's and a connector's configuration, to be started as often as the story needs.
#[derive(Debug)]
pub struct Job {
    folder: TempDir,
    name: String,
    bootstrap: String,
    worker: Vec<(String, String)>,
    connector: Vec<(String, String)>,
    started: u32,
}

impl Job {
    /// A job whose group, connector and topic have names of their own; the file is `in.txt` in the job's folder.
    ///
    /// # Panics
    /// No temporary folder can be made.
    pub fn new(name: &str, bootstrap: &str) -> Self {
        let folder =
            tempfile::Builder::new().prefix("oncewire-job-").tempdir().expect("a temporary folder can be made");
        let mut job = Job {
            folder,
            name: name.to_owned(),
            bootstrap: bootstrap.to_owned(),
            worker: Vec::new(),
            connector: Vec::new(),
            started: 0,
        };
        let string = "org.apache.kafka.connect.storage.StringConverter";
        let offsets_topic = job.offsets_topic();
        for (key, value) in [
            ("bootstrap.servers", bootstrap),
            ("group.id", &format!("{name}-group")),
            ("key.converter", string),
            ("value.converter", string),
            ("offset.storage.topic", &offsets_topic),
            ("offset.storage.partitions", "3"),
            ("offset.storage.replication.factor", "1"),
        ] {
            job = job.worker(key, value);
        }
        let file = job.file().display().to_string();
        let topic = job.topic();
        for (key, value) in [
            ("name", job.connector_name().as_str()),
            ("connector.class", "FileStreamSource"),
            ("tasks.max", "1"),
            ("file", &file),
            ("topic", &topic),
        ] {
            job = job.connector(key, value);
        }
        job
    }

    /// A job of the sequence connector instead: so many tasks, each of which writes so many records. There is no file.
    ///
    /// # Panics
    /// No temporary folder can be made.
    pub fn sequence(name: &str, bootstrap: &str, tasks: u32, records: u64) -> Self {
        Job::new(name, bootstrap)
            .without_connector("file")
            .connector("connector.class", "io.oncewire.connect.sequence.SequenceSourceConnector")
            .connector("tasks", &tasks.to_string())
            .connector("tasks.max", &tasks.to_string())
            .connector("records.max", &records.to_string())
    }

    /// Sets a worker property, or replaces it.
    #[must_use]
    pub fn worker(mut self, key: &str, value: &str) -> Self {
        set(&mut self.worker, key, value);
        self
    }

    /// Sets a connector property, or replaces it.
    #[must_use]
    pub fn connector(mut self, key: &str, value: &str) -> Self {
        set(&mut self.connector, key, value);
        self
    }

    /// Leaves a connector property out.
    #[must_use]
    pub fn without_connector(mut self, key: &str) -> Self {
        self.connector.retain(|(known, _)| known != key);
        self
    }

    /// The connector's name.
    pub fn connector_name(&self) -> String {
        format!("{}-connector", self.name)
    }

    /// The topic that the lines go to.
    pub fn topic(&self) -> String {
        format!("{}-topic", self.name)
    }

    /// The topic with the source offsets.
    pub fn offsets_topic(&self) -> String {
        format!("{}-offsets", self.name)
    }

    /// The file that is streamed. The job does not make it.
    pub fn file(&self) -> PathBuf {
        self.path("in.txt")
    }

    /// A path in the job's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The broker's address.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// Writes the properties files and starts a worker on them.
    ///
    /// # Panics
    /// The worker cannot be started.
    pub fn start(&mut self) -> Process {
        self.run(Command::new(oncewire()))
    }

    /// Starts a worker that may do no more than any user; for tests that run as root, who is refused nothing.
    ///
    /// # Panics
    /// The worker cannot be started.
    pub fn start_as_nobody(&mut self) -> Process {
        // Neither the build's folder nor ours need be open to others.
        let copy = self.path("oncewire");
        fs::copy(oncewire(), &copy).expect("the job's folder can be written");
        fs::set_permissions(self.folder.path(), fs::Permissions::from_mode(0o755)).expect("the folder is ours");
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(copy);
        self.run(command)
    }

    fn run(&mut self, mut command: Command) -> Process {
        let worker = self.write("worker.properties", &self.worker);
        let connector = self.write("connector.properties", &self.connector);
        self.started += 1;
        let log = self.path(&format!("worker-{}.log", self.started));
        command.arg("standalone").arg(worker).arg(connector);
        Process::start(&mut command, &log).expect("oncewire starts")
    }

    fn write(&self, name: &str, properties: &[(String, String)]) -> PathBuf {
        let path = self.path(name);
        let text: String = properties.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
        fs::write(&path, text).expect("the job's folder can be written");
        path
    }
}

fn set(properties: &mut Vec<(String, String)>, key: &str, value: &str) {
    match properties.iter_mut().find(|(known, _)| known == key) {
        Some((_, known)) => value.clone_into(known),
        None => properties.push((key.to_owned(), value.to_owned())),
    }
}
