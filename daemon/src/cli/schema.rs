//! What the JSON that mpiprobe prints looks like, as JSON Schema (json-schema.org).

use clap::ValueEnum;
use mpiprobe_model::{Report, analyse::ProfileOutput};
use mpiprobe_report::{compare::Comparison, present::JobList};
use schemars::{JsonSchema, Schema, generate::SchemaSettings};

use crate::{hang::Explained, service::JobSummary};

/// What is printed as JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Printed {
    /// A profile: `--json`, `report --json`, `view --json`, `run --json`.
    #[default]
    Profile,
    /// A comparison: `compare --format json`.
    Comparison,
    /// The jobs on this node: `ps --json`.
    Jobs,
    /// What works here: `doctor --json`.
    Doctor,
    /// What ranks of a job do: `hang --json`.
    Hang,
    /// What the node service keeps of a job that has ended.
    Job,
}

/// Fields that come later are no mistake, so none is forbidden.
pub(super) fn schema(of: Printed) -> Schema {
    match of {
        Printed::Profile => generated::<ProfileOutput<'_>>(mpiprobe_model::SCHEMA),
        Printed::Comparison => generated::<Comparison>(mpiprobe_report::compare::SCHEMA),
        Printed::Jobs => generated::<JobList<'_>>(JobList::SCHEMA),
        Printed::Doctor => generated::<Report>(Report::SCHEMA),
        Printed::Job => generated::<JobSummary>(JobSummary::SCHEMA),
        Printed::Hang => generated::<Explained>(Explained::SCHEMA),
    }
}

fn generated<T: JsonSchema>(name: &str) -> Schema {
    let mut schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    schema.insert("title".into(), name.into());
    if let Some(field) = schema.pointer_mut("/properties/schema").and_then(|field| field.as_object_mut()) {
        field.insert("const".into(), name.into());
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_says_of_what_it_is() {
        for of in Printed::value_variants() {
            let schema = schema(*of);
            let text = schema.as_value().to_string();
            let name = schema.get("title").and_then(|title| title.as_str()).unwrap();
            assert_eq!(
                schema.pointer("/properties/schema/const").and_then(|name| name.as_str()),
                Some(name),
                "{text:.300}"
            );
            assert!(schema.get("additionalProperties").is_none(), "{name}");
        }
    }
}
