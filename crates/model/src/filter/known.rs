//! Values that are worth asking for: those of the present profile.

use std::collections::{BTreeMap, BTreeSet};

use super::Field;
use crate::Profile;

/// Texts by field, in the order of the alphabet.
#[derive(Clone, Debug, Default)]
pub struct Values(BTreeMap<&'static str, BTreeSet<String>>);

impl Values {
    pub fn of(profile: &Profile) -> Self {
        let mut values = Self::default();
        // As the facts of a rank have them.
        for state in ["running", "stopped", "ended", "execed"] {
            values.add(Field::State, state);
        }
        values.add(Field::Host, &profile.host);
        for row in &profile.functions {
            values.add(Field::Function, row.all.name);
            values.add(Field::Group, row.all.group);
        }
        for job in &profile.jobs {
            values.add(Field::Job, &job.id);
        }
        for communicator in profile.traffic.iter().flat_map(|traffic| &traffic.communicators) {
            values.add(Field::Communicator, &communicator.name);
        }
        for rank in &profile.ranks {
            values.add(Field::Program, &rank.executable);
            let Some(traffic) = &rank.traffic else { continue };
            let flows = traffic.flows.iter().map(|row| row.site.as_deref());
            for site in flows.chain(traffic.pending.iter().map(|row| row.site.as_deref())).flatten() {
                values.add(Field::Site, site);
            }
        }
        values
    }

    pub fn add(&mut self, field: Field, value: &str) {
        let known = self.0.entry(field.name()).or_default();
        // Most are known already: thousands of ranks have them in common.
        if !known.contains(value) {
            known.insert(value.to_owned());
        }
    }

    pub fn get(&self, field: Field) -> impl Iterator<Item = &str> {
        self.0.get(field.name()).into_iter().flatten().map(String::as_str)
    }
}
