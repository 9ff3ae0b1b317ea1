//! What a session keeps beside its trace: pictures of windows before and after actions, and the refs of snapshots.

/// Whether a name in the trace directory is one of ours.
pub(crate) fn is_ours(name: &str) -> bool {
    [SCREENS, MAPS, LEDGER, BUDGET].contains(&name)
}

pub(crate) const SCREENS: &str = "screens";
pub(crate) const MAPS: &str = "refmaps";
const LEDGER: &str = ".artifact-usage.json";
const BUDGET: &str = ".artifact-budget.lock";
