//! Records of JSON as Parquet: the same fields, nested as they are, with the types that their JSON Schema (draft 2020-12) says.
//!
//! Nested and repeated values are stored by definition and repetition levels (Melnik et al., Dremel, VLDB 2010, section 4).

use std::sync::Arc;

use parquet::{
    basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Stored},
    data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type},
    errors::ParquetError,
    file::{properties::EnabledStatistics, writer::SerializedFileWriter},
    schema::types::{Type, TypePtr},
};
use serde_json::{Map, Value};

use crate::{error::ExportError, parquet::common_properties};

/// Records within records. What lies deeper is text.
const DEEPEST: usize = 16;

/// What a field holds. Each may be missing.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Text,
    /// Text of RFC 3339, stored as microseconds since 1970, UTC.
    Time,
    Whole,
    Number,
    Truth,
    Record(Vec<(String, Kind)>),
    List(Box<Kind>),
    /// What tables have no type for: text of JSON.
    Json,
}

impl Kind {
    /// By a schema, whose references are resolved in `root`.
    fn of(root: &Value, schema: &Value, depth: usize) -> Self {
        if depth > DEEPEST {
            return Self::Json;
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let named = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            return named.map_or(Self::Json, |named| Self::of(root, named, depth + 1));
        }
        if let Some(choice) = ["anyOf", "oneOf"].into_iter().find_map(|name| schema.get(name)?.as_array()) {
            let mut kinds = choice.iter().filter(|one| !is_null(one)).map(|one| Self::of(root, one, depth + 1));
            let first = kinds.next().unwrap_or(Self::Json);
            return if kinds.all(|kind| kind == first) { first } else { Self::Json };
        }
        let kinds = match schema.get("type") {
            Some(Value::Array(kinds)) => {
                kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect()
            }
            Some(Value::String(kind)) => vec![kind.as_str()],
            _ => Vec::new(),
        };
        match (kinds.as_slice(), schema.get("properties"), schema.get("items")) {
            (["string"], ..) if schema.get("format").and_then(Value::as_str) == Some("date-time") => Self::Time,
            (["string"], ..) => Self::Text,
            (["integer"], ..) => Self::Whole,
            (["number"], ..) => Self::Number,
            (["boolean"], ..) => Self::Truth,
            (["object"], Some(Value::Object(fields)), _) if !fields.is_empty() => {
                Self::Record(fields.iter().map(|(name, of)| (name.clone(), Self::of(root, of, depth + 1))).collect())
            }
            (["array"], _, Some(of)) => Self::List(Box::new(Self::of(root, of, depth + 1))),
            _ => Self::Json,
        }
    }

    /// Columns that it takes.
    fn columns(&self) -> usize {
        match self {
            Self::Record(fields) => fields.iter().map(|(_, kind)| kind.columns()).sum(),
            Self::List(of) => of.columns(),
            _ => 1,
        }
    }

    fn add_columns(&self, is_repeated: bool, to: &mut Vec<Column>) {
        let values = match self {
            Self::Record(fields) => return fields.iter().for_each(|(_, kind)| kind.add_columns(is_repeated, to)),
            Self::List(of) => return of.add_columns(true, to),
            Self::Text | Self::Json => Values::Text(Vec::new()),
            Self::Time | Self::Whole => Values::Whole(Vec::new()),
            Self::Number => Values::Number(Vec::new()),
            Self::Truth => Values::Truth(Vec::new()),
        };
        to.push(Column { values, definitions: Vec::new(), repetitions: is_repeated.then(Vec::new) });
    }

    /// Its type in the file.
    fn stored(&self, name: &str) -> Result<TypePtr, ParquetError> {
        let leaf = |stored, logical| {
            Type::primitive_type_builder(name, stored)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(logical)
                .build()
        };
        let stored = match self {
            Self::Text => leaf(Stored::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Json => leaf(Stored::BYTE_ARRAY, Some(LogicalType::Json)),
            Self::Time => leaf(Stored::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
            Self::Whole => leaf(Stored::INT64, None),
            Self::Number => leaf(Stored::DOUBLE, None),
            Self::Truth => leaf(Stored::BOOLEAN, None),
            Self::Record(fields) => Type::group_type_builder(name)
                .with_repetition(Repetition::OPTIONAL)
                .with_fields(fields_of(fields)?)
                .build(),
            Self::List(of) => {
                let items = Type::group_type_builder("list")
                    .with_repetition(Repetition::REPEATED)
                    .with_fields(vec![of.stored("element")?])
                    .build()?;
                Type::group_type_builder(name)
                    .with_repetition(Repetition::OPTIONAL)
                    .with_logical_type(Some(LogicalType::List))
                    .with_converted_type(ConvertedType::LIST)
                    .with_fields(vec![Arc::new(items)])
                    .build()
            }
        };
        stored.map(Arc::new)
    }

    /// Adds a value to its columns.
    fn put(&self, value: &Value, at: Levels, columns: &mut [Column]) {
        match (self, value) {
            (Self::Record(fields), Value::Object(record)) => put_fields(fields, record, at.defined(1), columns),
            (Self::List(of), Value::Array(items)) if !items.is_empty() => {
                for (number, item) in items.iter().enumerate() {
                    of.put(item, at.item(number == 0), columns);
                }
            }
            (Self::List(_), Value::Array(_)) => columns.iter_mut().for_each(|column| column.level(at.defined(1))),
            _ => {
                let is_there = columns.first_mut().is_some_and(|column| column.values.push(self, value));
                let at = if is_there { at.defined(1) } else { at };
                for column in columns {
                    column.level(at);
                }
            }
        }
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

fn fields_of(fields: &[(String, Kind)]) -> Result<Vec<TypePtr>, ParquetError> {
    fields.iter().map(|(name, kind)| kind.stored(name)).collect()
}

fn put_fields(fields: &[(String, Kind)], record: &Map<String, Value>, at: Levels, columns: &mut [Column]) {
    let mut columns = columns;
    for (name, kind) in fields {
        let Some((own, others)) = columns.split_at_mut_checked(kind.columns()) else { return };
        kind.put(record.get(name).unwrap_or(&Value::Null), at, own);
        columns = others;
    }
}

/// Where in a record a value is.
#[derive(Clone, Copy, Debug, Default)]
struct Levels {
    /// How much of its path is there.
    definition: i16,
    /// Which of the lists on its path is going on; 0: a new record.
    repetition: i16,
    /// Lists on its path.
    lists: i16,
}

impl Levels {
    fn defined(self, more: i16) -> Self {
        Self { definition: self.definition + more, ..self }
    }

    /// An item of the list that is here.
    fn item(self, is_first: bool) -> Self {
        let lists = self.lists + 1;
        Self { definition: self.definition + 2, repetition: if is_first { self.repetition } else { lists }, lists }
    }
}

enum Values {
    Text(Vec<ByteArray>),
    Whole(Vec<i64>),
    Number(Vec<f64>),
    Truth(Vec<bool>),
}

impl Values {
    /// Whether there is a value.
    fn push(&mut self, kind: &Kind, value: &Value) -> bool {
        fn add<T>(to: &mut Vec<T>, value: Option<T>) -> bool {
            let before = to.len();
            to.extend(value);
            to.len() > before
        }
        match (self, kind) {
            (Self::Text(texts), Kind::Json) => {
                let text = || ByteArray::from(value.to_string().into_bytes());
                add(texts, (!value.is_null()).then(text))
            }
            (Self::Text(texts), Kind::Text) => add(texts, value.as_str().map(ByteArray::from)),
            (Self::Whole(numbers), Kind::Time) => {
                let time = value.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
                add(numbers, time.map(jiff::Timestamp::as_microsecond))
            }
            (Self::Whole(numbers), Kind::Whole) => add(numbers, value.as_i64()),
            (Self::Number(numbers), Kind::Number) => add(numbers, value.as_f64()),
            (Self::Truth(truths), Kind::Truth) => add(truths, value.as_bool()),
            _ => false,
        }
    }
}

struct Column {
    values: Values,
    definitions: Vec<i16>,
    /// `None`: it is in no list.
    repetitions: Option<Vec<i16>>,
}

impl Column {
    fn level(&mut self, at: Levels) {
        self.definitions.push(at.definition);
        if let Some(repetitions) = &mut self.repetitions {
            repetitions.push(at.repetition);
        }
    }
}

/// Records of a schema, as a whole file. Names in lists and records are those of the schema; what has no type of its own in tables is
/// text of JSON. Whole numbers are signed, 64 bits; greater ones are missing.
pub fn records(schema: &Value, records: &[Map<String, Value>]) -> Result<Vec<u8>, ExportError> {
    let Kind::Record(fields) = Kind::of(schema, schema, 0) else {
        return Err(ParquetError::General("the schema is not that of a record".into()).into());
    };
    let mut columns = Vec::new();
    for (_, kind) in &fields {
        kind.add_columns(false, &mut columns);
    }
    for record in records {
        put_fields(&fields, record, Levels::default(), &mut columns);
    }
    Ok(write(&fields, &columns)?)
}

fn write(fields: &[(String, Kind)], columns: &[Column]) -> Result<Vec<u8>, ParquetError> {
    let message = Type::group_type_builder("records").with_fields(fields_of(fields)?).build()?;
    let properties = common_properties()?
        // Of few rows, these would be most of the file.
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false)
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(message), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for Column { values, definitions, repetitions } in columns {
        let Some(mut to) = group.next_column()? else { break };
        let (definitions, repetitions) = (Some(definitions.as_slice()), repetitions.as_deref());
        match values {
            Values::Text(values) => to.typed::<ByteArrayType>().write_batch(values, definitions, repetitions),
            Values::Whole(values) => to.typed::<Int64Type>().write_batch(values, definitions, repetitions),
            Values::Number(values) => to.typed::<DoubleType>().write_batch(values, definitions, repetitions),
            Values::Truth(values) => to.typed::<BoolType>().write_batch(values, definitions, repetitions),
        }?;
        to.close()?;
    }
    group.close()?;
    writer.into_inner()
}

#[cfg(test)]
mod tests {
    use parquet::{
        file::reader::{FileReader as _, SerializedFileReader},
        record::{Field, Row},
    };
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "began": { "type": "string", "format": "date-time" },
                "size": { "type": ["integer", "null"] },
                "part": { "type": ["number", "null"] },
                "whole": { "type": "boolean" },
                "end": { "anyOf": [{ "$ref": "#/$defs/End" }, { "type": "null" }] },
                "tags": { "type": "array", "items": { "type": "string" } },
                "groups": { "type": "array", "items": { "$ref": "#/$defs/Group" } },
                "any": {},
            },
            "$defs": {
                "End": { "oneOf": [{ "type": "string", "const": "exited" }, { "type": "string", "const": "killed" }] },
                "Group": {
                    "type": "object",
                    "properties": {
                        "calls": { "type": "integer" },
                        "sizes": { "type": "array", "items": { "type": "integer" } },
                        "spread": { "anyOf": [
                            { "type": "object", "properties": { "mean": { "type": "number" } } },
                            { "type": "null" },
                        ] },
                    },
                },
            },
        })
    }

    fn objects(values: &Value) -> Vec<Map<String, Value>> {
        values.as_array().unwrap().iter().map(|value| value.as_object().unwrap().clone()).collect()
    }

    /// What a reader has of it, by the library that has written it: another one reads it in a trial of the service.
    fn read(file: &[u8]) -> Value {
        let mut written = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut written, file).unwrap();
        let reader = SerializedFileReader::new(written).unwrap();
        reader.get_row_iter(None).unwrap().map(|row| record(&row.unwrap())).collect()
    }

    fn record(row: &Row) -> Value {
        row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect::<Map<_, _>>().into()
    }

    fn value(field: &Field) -> Value {
        match field {
            Field::Bool(truth) => (*truth).into(),
            Field::Long(number) => (*number).into(),
            Field::Double(number) => (*number).into(),
            Field::Str(text) => text.as_str().into(),
            Field::TimestampMicros(time) => format!("{time} us").into(),
            Field::Group(row) => record(row),
            Field::ListInternal(items) => items.elements().iter().map(value).collect(),
            _ => Value::Null,
        }
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let rows = json!([
            {
                "name": "one", "began": "2026-11-27T03:04:05.000006Z", "size": 4, "part": 12.5, "whole": true, "end": "exited",
                "tags": ["a", "b"], "any": {"x": 1},
                "groups": [
                    {"calls": 1, "sizes": [1, 2, 3], "spread": {"mean": 0.5}},
                    {"calls": 2, "sizes": [], "spread": null},
                    {"calls": 3, "sizes": [4], "spread": {"mean": null}},
                ],
            },
            {
                "name": "two", "began": null, "size": null, "part": null, "whole": false, "end": null, "tags": [], "any": null,
                "groups": [],
            },
            {
                "name": "three", "began": "2026-11-27T03:04:05Z", "size": u64::MAX, "part": 3, "whole": true, "end": "killed",
                "tags": ["c"], "any": [1], "groups": null,
            },
        ]);
        let mut expected = rows.clone();
        for (row, time) in [(0, "1795748645000006 us"), (2, "1795748645000000 us")] {
            expected[row]["began"] = time.into();
        }
        (expected[0]["any"], expected[2]["any"]) = (r#"{"x":1}"#.into(), "[1]".into());
        (expected[2]["size"], expected[2]["part"]) = (Value::Null, 3.0.into());
        assert_eq!(read(&records(&schema(), &objects(&rows)).unwrap()), expected);
    }

    #[test]
    fn fields_that_are_missing_or_of_another_type_have_no_value() {
        let read = read(&records(&schema(), &objects(&json!([{"name": 7, "groups": "none"}, {}]))).unwrap());
        for row in read.as_array().unwrap() {
            assert!(row.as_object().unwrap().values().all(Value::is_null), "{row}");
        }
    }

    #[test]
    fn a_schema_without_fields_or_that_holds_itself_is_no_mishap() {
        assert!(records(&json!({}), &[]).is_err());
        let endless = json!({ "type": "object", "properties": { "next": { "$ref": "#" } } });
        assert_eq!(read(&records(&endless, &objects(&json!([{}]))).unwrap()).as_array().unwrap().len(), 1);
    }
}
