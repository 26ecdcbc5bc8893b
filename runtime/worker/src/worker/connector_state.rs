//! What a connector instance does about a wish. Pure.
//!
//! ```text
//!          ┌────────► Started ◄────┐
//!  Init ───┼────────► Paused  ◄────┤ (any to any)
//!          └────────► Stopped ◄────┘
//!  any ── error ────► Failed ─────► Stopped, and nothing else until it is made anew
//! ```
//!
//! Leaving Started stops the connector; coming back starts the same instance again. An error while stopping for good still
//! ends Stopped. Source: KIP-875 and Kafka Connect's observable behaviour.

use super::status::{State, TargetState};

/// Where an instance stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Made, never started.
    Init,
    /// Started.
    Started,
    /// Not started, may be resumed.
    Paused,
    /// Stopped by a person.
    Stopped,
    /// Failed.
    Failed,
}

/// What has to be called for a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// Nothing.
    Nothing,
    /// The connector's `start`.
    Start,
    /// The connector's `stop`.
    Stop,
}

/// What follows a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It is there already; nothing is told.
    Already,
    /// Call this; then be in this phase, and tell its state.
    Go(Call, Phase),
    /// It has failed and can't be brought there.
    Refuse,
}

impl Phase {
    /// What a wish asks for.
    pub(super) fn wish(self, target: TargetState) -> Step {
        let wanted = match target {
            TargetState::Started => Self::Started,
            TargetState::Paused => Self::Paused,
            TargetState::Stopped => Self::Stopped,
        };
        match self {
            Self::Failed if wanted != Self::Stopped => Step::Refuse,
            phase if phase == wanted => Step::Already,
            Self::Started => Step::Go(Call::Stop, wanted),
            _ if wanted == Self::Started => Step::Go(Call::Start, wanted),
            _ => Step::Go(Call::Nothing, wanted),
        }
    }

    /// The state that is told of it.
    pub(super) fn state(self) -> State {
        match self {
            Self::Init => State::Unassigned,
            Self::Started => State::Running,
            Self::Paused => State::Paused,
            Self::Stopped => State::Stopped,
            Self::Failed => State::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TargetState as Target;

    #[test]
    fn each_wish_from_each_phase() {
        let table = [
            (Phase::Init, Target::Started, Step::Go(Call::Start, Phase::Started)),
            (Phase::Init, Target::Paused, Step::Go(Call::Nothing, Phase::Paused)),
            (Phase::Init, Target::Stopped, Step::Go(Call::Nothing, Phase::Stopped)),
            (Phase::Started, Target::Started, Step::Already),
            (Phase::Started, Target::Paused, Step::Go(Call::Stop, Phase::Paused)),
            (Phase::Started, Target::Stopped, Step::Go(Call::Stop, Phase::Stopped)),
            (Phase::Paused, Target::Started, Step::Go(Call::Start, Phase::Started)),
            (Phase::Paused, Target::Paused, Step::Already),
            (Phase::Paused, Target::Stopped, Step::Go(Call::Nothing, Phase::Stopped)),
            (Phase::Stopped, Target::Started, Step::Go(Call::Start, Phase::Started)),
            (Phase::Stopped, Target::Paused, Step::Go(Call::Nothing, Phase::Paused)),
            (Phase::Failed, Target::Started, Step::Refuse),
            (Phase::Failed, Target::Paused, Step::Refuse),
            (Phase::Failed, Target::Stopped, Step::Go(Call::Nothing, Phase::Stopped)),
        ];
        for (phase, target, step) in table {
            assert_eq!(phase.wish(target), step, "{phase:?} {target:?}");
        }
    }
}
