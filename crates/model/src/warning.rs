//! What is probably wrong with a job.

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// In a word or two.
    pub name: &'static str,
    /// With its figures.
    pub found: String,
    /// What it means.
    pub meaning: &'static str,
    /// What to do about it.
    pub advice: &'static str,
}
