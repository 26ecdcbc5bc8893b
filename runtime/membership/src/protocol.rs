//! The three group protocols under which Connect workers understand each other.

/// A protocol of the group type `connect`. The order is that of age: the broker picks the one that every member knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConnectProtocol {
    /// All work stops for every rebalance; the name on the wire is `default`.
    Eager,
    /// Only what moves stops (KIP-415).
    Compatible,
    /// As [`Compatible`](Self::Compatible), and internal REST requests are signed (KIP-507).
    Sessioned,
}

impl ConnectProtocol {
    /// The name in JoinGroup.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eager => "default",
            Self::Compatible => "compatible",
            Self::Sessioned => "sessioned",
        }
    }

    /// The number that leads the bytes of metadata and assignments.
    pub fn version(self) -> i16 {
        match self {
            Self::Eager => 0,
            Self::Compatible => 1,
            Self::Sessioned => 2,
        }
    }

    /// The protocol that JoinGroup's answer names.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Eager, Self::Compatible, Self::Sessioned].into_iter().find(|protocol| protocol.name() == name)
    }

    /// A value of the worker property `connect.protocol`, in any case. There the eager protocol is `eager`, not `default`.
    pub fn from_property(value: &str) -> Option<Self> {
        match value.to_ascii_lowercase().as_str() {
            "eager" => Some(Self::Eager),
            "compatible" => Some(Self::Compatible),
            "sessioned" => Some(Self::Sessioned),
            _ => None,
        }
    }

    /// What a worker with this `connect.protocol` offers, the preferred first.
    pub fn offered(self) -> Vec<Self> {
        [Self::Sessioned, Self::Compatible, Self::Eager].into_iter().filter(|protocol| *protocol <= self).collect()
    }

    /// Whether internal REST requests must carry a signature under this protocol.
    pub fn signs_requests(self) -> bool {
        self == Self::Sessioned
    }

    /// Whether a member stops all its work before it joins again.
    pub fn is_eager(self) -> bool {
        self == Self::Eager
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario A4.
    #[test]
    fn offered_protocol_order() {
        let names =
            |protocol: ConnectProtocol| protocol.offered().into_iter().map(ConnectProtocol::name).collect::<Vec<_>>();
        assert_eq!(names(ConnectProtocol::Sessioned), ["sessioned", "compatible", "default"]);
        assert_eq!(names(ConnectProtocol::Compatible), ["compatible", "default"]);
        assert_eq!(names(ConnectProtocol::Eager), ["default"]);
        assert_eq!(ConnectProtocol::from_name("eager"), None);
        assert_eq!(ConnectProtocol::from_name("default"), Some(ConnectProtocol::Eager));
        assert_eq!(ConnectProtocol::from_property("EAGER"), Some(ConnectProtocol::Eager));
        assert_eq!(ConnectProtocol::from_property("default"), None);
    }

    /// Scenario A5, the part that is ours: the broker picks what all know, and without `sessioned` nothing is signed.
    #[test]
    fn downgrade_by_one_member() {
        let members = [ConnectProtocol::Sessioned, ConnectProtocol::Sessioned, ConnectProtocol::Compatible];
        let chosen = ConnectProtocol::Sessioned
            .offered()
            .into_iter()
            .find(|one| members.iter().all(|member| member.offered().contains(one)));
        assert_eq!(chosen, Some(ConnectProtocol::Compatible));
        assert!(!ConnectProtocol::Compatible.signs_requests());
        assert!(ConnectProtocol::Sessioned.signs_requests());
    }
}
