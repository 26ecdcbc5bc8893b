//! What must hold for `exactly.once.support=required` and `transaction.boundary=connector` (KIP-618, "preflight validation").
//!
//! Two texts are Java's, which tools know; the others are ours.

use std::panic::{AssertUnwindSafe, catch_unwind};

use oncewire_api::config_def::{CheckedValue, ConfigValue};
use oncewire_api::{ConnectorTransactionBoundaries, ExactlyOnceSupport, Properties, SourceConnector};

use crate::framework::{EXACTLY_ONCE_SOURCE, EXACTLY_ONCE_SUPPORT, TRANSACTION_BOUNDARY};

const WORKER_IS_OFF: &str = "This worker does not have exactly-once source support enabled.";
const NOT_SUPPORTED: &str = "The connector does not support exactly-once semantics with the provided configuration.";
const NOT_KNOWN: &str = "The connector does not say whether it can deliver exactly once. Look it up in its documentation; where it can, \
                         set this property to \"requested\", with which nothing is asked and the connector may be created.";
const NO_BOUNDARIES: &str = "The connector does not support connector-defined transaction boundaries with the given configuration. \
                             Please reconfigure it to use a different transaction boundary definition.";
const PANICKED: &str = "An unexpected error occurred during validation; please see the worker logs for more details.";
const CONTRADICTION: &str = "It is \"disabled\", but exactly.once.support is \"required\"; remove one of the two.";

/// Asks the connector, where the configuration wants something of it.
pub(crate) fn check_exactly_once(
    worker_is_on: bool,
    connector: &dyn SourceConnector,
    properties: &Properties,
    checked: &mut [CheckedValue],
) {
    let asks = |checked: &[CheckedValue], key: &str, wanted: &str| {
        let value = checked.iter().find(|value| value.name == key);
        value.is_some_and(|value| value.errors.is_empty() && is_text(&value.value, wanted))
    };
    let is_required = asks(checked, EXACTLY_ONCE_SUPPORT, "required");
    if is_required {
        let mut errors = Vec::new();
        if !worker_is_on {
            errors.push(WORKER_IS_OFF);
        }
        match catch_unwind(AssertUnwindSafe(|| connector.exactly_once_support(properties))) {
            Ok(Some(ExactlyOnceSupport::Supported)) => {}
            Ok(Some(ExactlyOnceSupport::Unsupported)) => errors.push(NOT_SUPPORTED),
            Ok(None) => errors.push(NOT_KNOWN),
            Err(_) => errors.push(panicked("exactly_once_support")),
        }
        add(checked, EXACTLY_ONCE_SUPPORT, &errors);
    }
    if is_required && asks(checked, EXACTLY_ONCE_SOURCE, "disabled") {
        add(checked, EXACTLY_ONCE_SOURCE, &[CONTRADICTION]);
    }
    if asks(checked, TRANSACTION_BOUNDARY, "connector") {
        match catch_unwind(AssertUnwindSafe(|| connector.can_define_transaction_boundaries(properties))) {
            Ok(Some(ConnectorTransactionBoundaries::Supported)) => {}
            Ok(_) => add(checked, TRANSACTION_BOUNDARY, &[NO_BOUNDARIES]),
            Err(_) => add(checked, TRANSACTION_BOUNDARY, &[panicked("can_define_transaction_boundaries")]),
        }
    }
}

fn panicked(method: &str) -> &'static str {
    tracing::error!(method, "a connector panicked while its configuration was validated");
    PANICKED
}

fn is_text(value: &ConfigValue, wanted: &str) -> bool {
    matches!(value, ConfigValue::Text(text) if text.eq_ignore_ascii_case(wanted))
}

fn add(checked: &mut [CheckedValue], key: &str, errors: &[&str]) {
    if let Some(value) = checked.iter_mut().find(|value| value.name == key) {
        value.errors.extend(errors.iter().map(ToString::to_string));
    }
}
