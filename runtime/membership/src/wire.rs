//! The bytes of member metadata (JoinGroup) and of assignments (SyncGroup), in all three versions.
//!
//! ```text
//! metadata    version:i16 url:string config-offset:i64 [from v1: allocation:bytes?, itself an assignment]
//! assignment  version:i16 error:i16 leader:string leader-url:string config-offset:i64 assigned:items [from v1: revoked:items delay:i32]
//! items       count:i32, then per connector: name:string, count:i32, then task:i32 each; task -1 is the connector instance
//! ```
//!
//! Big-endian throughout; a string is an `i16` length and UTF-8. v1 and v2 differ in nothing but the number.
//!
//! The bytes come from other members, and a group takes anyone whom the broker lets in. So the reader trusts no count: it holds no more than
//! it has read, and because one name may head many tasks, what it copies is limited too ([`ITEMS_MAX`], [`ITEM_NAMES_BYTES_MAX`]).
//! Like Java it takes any version from 0 up, reads absent trailing fields as absent, and ignores what follows the fields it knows.
//! Source: Kafka's `ConnectProtocol` and `IncrementalCooperativeConnectProtocol`, by their bytes.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::load::{Load, TaskId};
use crate::protocol::ConnectProtocol;

/// The assignment can be worked on.
pub const NO_ERROR: i16 = 0;
/// The leader has not read as much of the config topic as some member has: there is nothing to work on, read and join again.
pub const CONFIG_MISMATCH: i16 = 1;

/// Longest string on the wire, in bytes of UTF-8. A connector with a longer name is never handed out; Java's leader fails on it.
pub const NAME_BYTES_MAX: usize = i16::MAX as usize;
/// Most connectors and tasks in one list. Connect clusters have thousands.
pub const ITEMS_MAX: usize = 1_000_000;
/// Most bytes of connector names that one list may make us hold, each task counting its connector's name.
pub const ITEM_NAMES_BYTES_MAX: usize = 64 << 20;

/// As the delay of an allocation, where nobody else tells one below 0: the member is about to go. Only leaders of ours look at it.
const GOING: i32 = -1;

/// In a list of tasks, stands for the connector instance itself.
const CONNECTOR_TASK: i32 = -1;

/// What a member tells about itself when it joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberState {
    /// Its advertised REST address, such as `http://host:8083/`.
    pub url: String,
    /// Offset after the last data record of the config topic that it has read; -1 if none.
    pub offset: i64,
    /// What it runs; absent in the eager protocol and when it runs nothing.
    pub allocation: Option<Assignment>,
}

impl MemberState {
    /// A member that hands over all that it runs and is then going to leave. For a Java leader it is one that runs nothing.
    pub fn going(url: String, offset: i64) -> Self {
        Self { url, offset, allocation: Some(Assignment { delay_ms: GOING, ..Assignment::default() }) }
    }

    /// Whether the member is to be given nothing.
    pub fn is_going(&self) -> bool {
        self.allocation.as_ref().is_some_and(|allocation| allocation.delay_ms == GOING)
    }

    /// What the member runs.
    pub fn load(&self) -> Load {
        self.allocation.as_ref().map(|allocation| allocation.assigned.clone()).unwrap_or_default()
    }
}

/// What the leader tells a member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assignment {
    /// [`NO_ERROR`] or [`CONFIG_MISMATCH`].
    pub error: i16,
    /// The leader's member id.
    pub leader: String,
    /// The leader's advertised REST address.
    pub leader_url: String,
    /// Offset of the config topic from which the assignment was calculated.
    pub offset: i64,
    /// Eager: all that the member is to run. Otherwise what it is to start besides what it runs (see [`crate::merge`]).
    pub assigned: Load,
    /// What the member must stop.
    pub revoked: Load,
    /// Milliseconds until everyone is to join again; 0: no such date.
    pub delay_ms: i32,
}

impl Assignment {
    /// Whether the leader could assign nothing.
    pub fn failed(&self) -> bool {
        self.error != NO_ERROR
    }
}

/// Bytes that are not what the protocol says. The fault is the sender's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The bytes end within a field.
    Truncated {
        /// The field.
        field: &'static str,
    },
    /// A version below 0.
    Version(i16),
    /// A length or count below 0 where none may be.
    NegativeLength {
        /// The field.
        field: &'static str,
        /// The number found.
        length: i32,
    },
    /// Text that is not UTF-8.
    NotUtf8 {
        /// The field.
        field: &'static str,
    },
    /// More connectors and tasks than [`ITEMS_MAX`], or more bytes of names than [`ITEM_NAMES_BYTES_MAX`].
    TooMany {
        /// The field.
        field: &'static str,
    },
}

impl std::fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Truncated { field } => write!(f, "the connect protocol's bytes end within {field}"),
            Self::Version(version) => write!(f, "the connect protocol's bytes have version {version}, below 0"),
            Self::NegativeLength { field, length } => {
                write!(f, "the connect protocol's bytes have length {length} for {field}")
            }
            Self::NotUtf8 { field } => write!(f, "the connect protocol's bytes hold a {field} that is not UTF-8"),
            Self::TooMany { field } => write!(
                f,
                "the connect protocol's bytes hold more in {field} than {ITEMS_MAX} connectors and tasks or {ITEM_NAMES_BYTES_MAX} bytes of names"
            ),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// The bytes of a member's metadata under `protocol`. A URL longer than [`NAME_BYTES_MAX`] is cut.
pub fn encode_metadata(protocol: ConnectProtocol, state: &MemberState) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(protocol.version());
    put_string(&mut out, &state.url);
    out.put_i64(state.offset);
    if !protocol.is_eager() {
        match &state.allocation {
            None => out.put_i32(-1),
            Some(allocation) => {
                let nested = encode_assignment(protocol, allocation);
                out.put_i32(i32::try_from(nested.len()).unwrap_or(i32::MAX));
                out.put_slice(&nested);
            }
        }
    }
    out.freeze()
}

/// Reads a member's metadata of any version.
///
/// # Errors
/// What [`ProtocolError`] lists.
pub fn decode_metadata(bytes: &[u8]) -> Result<MemberState, ProtocolError> {
    let mut reader = Reader { bytes };
    reader.version()?;
    let url = reader.string("url")?;
    let offset = reader.i64("config offset")?;
    let allocation = match reader.optional_bytes("allocation")? {
        None => None,
        Some(nested) => Some(decode_assignment(nested)?),
    };
    Ok(MemberState { url, offset, allocation })
}

/// The bytes of an assignment under `protocol`. A leader or URL longer than [`NAME_BYTES_MAX`] is cut; items with a longer name are left out.
pub fn encode_assignment(protocol: ConnectProtocol, assignment: &Assignment) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(protocol.version());
    out.put_i16(assignment.error);
    put_string(&mut out, &assignment.leader);
    put_string(&mut out, &assignment.leader_url);
    out.put_i64(assignment.offset);
    put_load(&mut out, &assignment.assigned);
    if !protocol.is_eager() {
        put_load(&mut out, &assignment.revoked);
        out.put_i32(assignment.delay_ms);
    }
    out.freeze()
}

/// Reads an assignment of any version.
///
/// # Errors
/// What [`ProtocolError`] lists.
pub fn decode_assignment(bytes: &[u8]) -> Result<Assignment, ProtocolError> {
    let mut reader = Reader { bytes };
    reader.version()?;
    Ok(Assignment {
        error: reader.i16("error")?,
        leader: reader.string("leader")?,
        leader_url: reader.string("leader url")?,
        offset: reader.i64("config offset")?,
        assigned: reader.load("assignment")?,
        revoked: reader.load("revoked")?,
        delay_ms: if reader.bytes.is_empty() { 0 } else { reader.i32("delay")? },
    })
}

fn put_string(out: &mut BytesMut, text: &str) {
    let cut = &text[..text.floor_char_boundary(NAME_BYTES_MAX)];
    out.put_i16(i16::try_from(cut.len()).unwrap_or(i16::MAX));
    out.put_slice(cut.as_bytes());
}

fn put_load(out: &mut BytesMut, load: &Load) {
    // In Java's order, so that equal contents are equal bytes: connectors with an instance first, then those that have only tasks.
    let mut tasks: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for task in &load.tasks {
        tasks.entry(&task.connector).or_default().push(task.task);
    }
    let mut items: Vec<(&str, Vec<i32>)> = Vec::new();
    for connector in &load.connectors {
        let mut numbers = vec![CONNECTOR_TASK];
        numbers.extend(tasks.remove(connector.as_str()).unwrap_or_default());
        items.push((connector, numbers));
    }
    items.extend(tasks);
    items.retain(|(connector, _)| connector.len() <= NAME_BYTES_MAX);
    out.put_i32(i32::try_from(items.len()).unwrap_or(i32::MAX));
    for (connector, numbers) in items {
        put_string(out, connector);
        out.put_i32(i32::try_from(numbers.len()).unwrap_or(i32::MAX));
        numbers.into_iter().for_each(|number| out.put_i32(number));
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn version(&mut self) -> Result<(), ProtocolError> {
        match self.i16("version")? {
            negative @ ..0 => Err(ProtocolError::Version(negative)),
            _ => Ok(()),
        }
    }

    fn i16(&mut self, field: &'static str) -> Result<i16, ProtocolError> {
        self.bytes.try_get_i16().map_err(|_| ProtocolError::Truncated { field })
    }

    fn i32(&mut self, field: &'static str) -> Result<i32, ProtocolError> {
        self.bytes.try_get_i32().map_err(|_| ProtocolError::Truncated { field })
    }

    fn i64(&mut self, field: &'static str) -> Result<i64, ProtocolError> {
        self.bytes.try_get_i64().map_err(|_| ProtocolError::Truncated { field })
    }

    fn take(&mut self, length: i32, field: &'static str) -> Result<&'a [u8], ProtocolError> {
        let length = usize::try_from(length).map_err(|_| ProtocolError::NegativeLength { field, length })?;
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(ProtocolError::Truncated { field })?;
        self.bytes = rest;
        Ok(taken)
    }

    fn str(&mut self, field: &'static str) -> Result<&'a str, ProtocolError> {
        let length = self.i16(field)?;
        std::str::from_utf8(self.take(i32::from(length), field)?).map_err(|_| ProtocolError::NotUtf8 { field })
    }

    fn string(&mut self, field: &'static str) -> Result<String, ProtocolError> {
        self.str(field).map(str::to_owned)
    }

    /// `None` when the length is negative or nothing is left.
    fn optional_bytes(&mut self, field: &'static str) -> Result<Option<&'a [u8]>, ProtocolError> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        match self.i32(field)? {
            ..0 => Ok(None),
            length => self.take(length, field).map(Some),
        }
    }

    /// Nothing when the count is negative or nothing is left.
    fn load(&mut self, field: &'static str) -> Result<Load, ProtocolError> {
        let mut load = Load::default();
        if self.bytes.is_empty() {
            return Ok(load);
        }
        let (mut items, mut name_bytes) = (0_usize, 0_usize);
        // The counts only steer the loops: each turn reads at least a byte or fails.
        for _ in 0..self.i32(field)? {
            let connector = self.str(field)?;
            let count = self.i32(field)?;
            if count < 0 {
                return Err(ProtocolError::NegativeLength { field, length: count });
            }
            for _ in 0..count {
                let task = self.i32(field)?;
                items += 1;
                name_bytes += connector.len();
                if items > ITEMS_MAX || name_bytes > ITEM_NAMES_BYTES_MAX {
                    return Err(ProtocolError::TooMany { field });
                }
                if task == CONNECTOR_TASK {
                    load.connectors.insert(connector.to_owned());
                } else {
                    load.tasks.insert(TaskId::new(connector, task));
                }
            }
        }
        Ok(load)
    }
}
