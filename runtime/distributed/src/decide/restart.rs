//! What a restart request touches (KIP-745).

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// Only what has failed.
    pub only_failed: bool,
    /// The tasks too.
    pub include_tasks: bool,
}

/// What is restarted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The connector instance.
    pub connector: bool,
    /// Tasks by number.
    pub tasks: Vec<u32>,
}

/// Makes the plan from the reported states: whether the connector instance has failed, and each task with whether it has.
pub fn plan(wish: Wish, connector_failed: bool, tasks: impl IntoIterator<Item = (u32, bool)>) -> Plan {
    let tasks = tasks
        .into_iter()
        .filter(|(_, failed)| wish.include_tasks && (!wish.only_failed || *failed))
        .map(|(task, _)| task)
        .collect();
    Plan { connector: !wish.only_failed || connector_failed, tasks }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G94, the plans of all four requests.
    #[test]
    fn restart_matrix() {
        let tasks = [(0, false), (1, true)];
        let made = |only_failed, include_tasks, failed| plan(Wish { only_failed, include_tasks }, failed, tasks);
        assert_eq!(made(false, false, false), Plan { connector: true, tasks: vec![] });
        assert_eq!(made(false, true, false), Plan { connector: true, tasks: vec![0, 1] });
        assert_eq!(made(true, false, false), Plan { connector: false, tasks: vec![] });
        assert_eq!(made(true, false, true), Plan { connector: true, tasks: vec![] });
        assert_eq!(made(true, true, false), Plan { connector: false, tasks: vec![1] });
    }
}
