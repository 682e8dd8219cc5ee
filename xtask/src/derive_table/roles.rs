//! From the Forum's kinds of parameters to our roles.

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::{Parameter, Procedure};

/// The argument in the table's notation.
pub(super) fn argument(procedure: &Procedure, parameter: &Parameter) -> anyhow::Result<String> {
    let direction = match parameter.param_direction.as_str() {
        "in" => "",
        "out" => ">",
        "inout" => "&",
        other => bail!("{}: unknown direction {other}", parameter.name),
    };
    let role = role(procedure, parameter)?;
    let mut text = format!("{direction}{}{}:{role}", parameter.name, length(parameter, role)?);
    let integer = ["count", "displacement", "bytes", "offset", "length", "other"].contains(&role);
    let marks = [
        (integer && always_64_bits(&parameter.kind), ":64"),
        (integer && !always_64_bits(&parameter.kind) && parameter.kind.starts_with("POLY"), ":c64"),
        (parameter.root_only, ":atroot"),
        (parameter.large_only, ":conly"),
    ];
    for (_, mark) in marks.iter().filter(|(applies, _)| *applies) {
        text.push_str(mark);
    }
    Ok(text)
}

fn length(parameter: &Parameter, role: &str) -> anyhow::Result<String> {
    // How long a string may become is not for the caller to say in every case, and nothing to profile.
    if role == "string" {
        return Ok(String::new());
    }
    match &parameter.length {
        None => Ok(String::new()),
        Some(Value::String(length)) if length.is_empty() => Ok("[*]".to_owned()),
        Some(Value::String(length)) => Ok(format!("[{length}]")),
        // Two dimensions: the second one is fixed (rank triplets).
        Some(Value::Array(lengths)) => match lengths.first() {
            Some(Value::String(first)) => Ok(format!("[{first}]")),
            _ => bail!("{}: unknown form of length", parameter.name),
        },
        Some(_) => bail!("{}: unknown form of length", parameter.name),
    }
}

/// The role that a kind has in every function.
const ROLES: &[(&str, &[&str])] = &[
    ("count", &["POLYXFER_NUM_ELEM", "POLYXFER_NUM_ELEM_NNI", "XFER_NUM_ELEM", "XFER_NUM_ELEM_NNI", "NUM_BYTES"]),
    ("count", &["POLYDTYPE_NUM_ELEM", "POLYDTYPE_NUM_ELEM_NNI", "POLYDTYPE_NUM_ELEM_PI"]),
    ("displacement", &["DISPLACEMENT", "DISPLACEMENT_NNI", "RMA_DISPLACEMENT_NNI", "LOCATION_SMALL", "POLYLOCATION"]),
    ("displacement", &["POLYDISPLACEMENT", "POLYDISPLACEMENT_COUNT", "POLYDISPLACEMENT_AINT_COUNT"]),
    ("displacement", &["POLYDTYPE_STRIDE_BYTES"]),
    ("bytes", &["POLYNUM_BYTES", "POLYNUM_BYTES_NNI", "POLYDTYPE_PACK_SIZE", "POLYRMA_DISPLACEMENT", "POLYDISPOFFSET"]),
    ("bytes", &["ALLOC_MEM_NUM_BYTES", "WINDOW_SIZE", "WIN_ATTACH_SIZE", "TYPECLASS_SIZE"]),
    ("offset", &["OFFSET"]),
    ("datatype", &["DATATYPE"]),
    ("tag", &["TAG"]),
    ("comm", &["COMMUNICATOR"]),
    ("request", &["REQUEST"]),
    ("status", &["STATUS", "F90_STATUS", "F08_STATUS"]),
    ("win", &["WINDOW"]),
    ("file", &["FILE"]),
    ("message", &["MESSAGE"]),
    ("op", &["OPERATION"]),
    ("info", &["INFO"]),
    ("group", &["GROUP"]),
    ("errhandler", &["ERRHANDLER"]),
    ("session", &["SESSION"]),
    ("string", &["STRING", "STRING_ARRAY", "STRING_2DARRAY", "ARGUMENT_LIST"]),
    ("length", &["ARRAY_LENGTH", "ARRAY_LENGTH_NNI", "ARRAY_LENGTH_PI", "ARGUMENT_COUNT", "STRING_LENGTH"]),
    ("length", &["INFO_VALUE_LENGTH", "NUM_DIMS", "DEGREE", "COMM_SIZE", "COMM_SIZE_PI", "POLYNUM_PARAM_VALUES"]),
    ("length", &["TOOLS_NUM_ELEM_SMALL"]),
    ("index", &["INDEX", "KEY_INDEX", "CAT_INDEX", "CVAR_INDEX", "CVAR_INDEX_SPECIAL", "EVENT_INDEX", "PVAR_INDEX"]),
    ("index", &["SOURCE_INDEX", "TOOLENUM_INDEX"]),
    ("flag", &["LOGICAL", "LOGICAL_OPTIONAL"]),
    ("partition", &["PARTITION"]),
    ("lock", &["LOCK_TYPE"]),
    ("keyval", &["KEYVAL"]),
    (
        "function",
        &["FUNCTION", "POLYFUNCTION", "EVENT_CB_FUNCTION", "EVENT_DROP_CB_FUNCTION", "EVENT_FREE_CB_FUNCTION"],
    ),
    ("address", &["C_BUFFER", "C_BUFFER2", "EXTRA_STATE", "EXTRA_STATE2", "ATTRIBUTE_VAL", "ATTRIBUTE_VAL_10"]),
    ("address", &["TOOL_MPI_OBJ", "LOGICAL_VOID"]),
    // Plain integers and handles of the tool interface: nothing a profiler looks at.
    ("other", &["ERROR_CODE", "ERROR_CLASS", "ERROR_CODE_SHOW_INTENT", "COMM_COMPARISON", "GROUP_COMPARISON"]),
    ("other", &["COORDINATE", "DIMENSION", "COLOR", "KEY", "SPLIT_TYPE", "TOPOLOGY_TYPE", "WEIGHT"]),
    ("other", &["FILE_DESCRIPTOR", "ASSERT", "THREAD_LEVEL", "VERSION", "ACCESS_MODE", "UPDATE_MODE"]),
    ("other", &["ORDER", "DISTRIB_ENUM", "DTYPE_DISTRIBUTION", "PROCESS_GRID_SIZE", "MATH", "COMBINER", "TYPECLASS"]),
    ("other", &["GENERIC_DTYPE_INT", "GENERIC_DTYPE_COUNT", "PROFILE_LEVEL", "UPDATE_NUMBER", "VARIABLE_SCOPE"]),
    (
        "other",
        &["TOOL_VAR_VERBOSITY", "TOOL_VAR_VALUE", "TOOLENUM_SIZE", "TOOLS_ENUM", "TOOLS_TICK_COUNT", "BIND_TYPE"],
    ),
    ("other", &["CVAR", "PVAR", "PVAR_CLASS", "PVAR_SESSION", "CALLBACK_SAFETY", "SOURCE_ORDERING"]),
    ("other", &["EVENT_REGISTRATION", "EVENT_INSTANCE"]),
    ("other", &["F90_COMM", "F90_DATATYPE", "F90_ERRHANDLER", "F90_FILE", "F90_GROUP", "F90_INFO", "F90_MESSAGE"]),
    ("other", &["F90_OP", "F90_REQUEST", "F90_SESSION", "F90_WIN"]),
];

fn role(procedure: &Procedure, parameter: &Parameter) -> anyhow::Result<&'static str> {
    let sizes = ["size", "lb", "extent", "true_lb", "true_extent"];
    match parameter.kind.as_str() {
        "BUFFER" if carries_data(procedure) => Ok("buffer"),
        "BUFFER" => Ok("address"),
        "RANK" | "RANK_NNI" => Ok(rank(procedure, parameter)),
        // What a datatype takes is in bytes; everything else of these kinds is a number of elements.
        "POLYXFER_NUM_ELEM" | "XFER_NUM_ELEM" if sizes.contains(&parameter.name.as_str()) => Ok("bytes"),
        kind => ROLES
            .iter()
            .find_map(|(role, kinds)| kinds.contains(&kind).then_some(*role))
            .with_context(|| format!("{}: unknown kind {kind}", parameter.name)),
    }
}

/// Whether the function's choice buffers hold data that a datatype describes (or did: the `_end` of split collectives),
/// and are not just memory handed to the library.
fn carries_data(procedure: &Procedure) -> bool {
    procedure.name.ends_with("_end")
        || (procedure.parameters.iter().any(|p| p.kind == "DATATYPE") && !procedure.name.starts_with("MPI_T_"))
}

/// A rank is a peer only where the function talks to it; otherwise it is the subject of a question.
fn rank(procedure: &Procedure, parameter: &Parameter) -> &'static str {
    let has = |kind: &str| procedure.parameters.iter().any(|p| p.kind == kind);
    if parameter.length.is_some() || parameter.param_direction != "in" {
        return "rank";
    }
    match parameter.name.as_str() {
        "dest" => "dest",
        "source" if has("TAG") => "source",
        "root" => "root",
        "target_rank" => "target",
        // MPI_Win_lock, MPI_Win_flush and their kin, but not MPI_Win_shared_query, which asks.
        "rank" if has("WINDOW") && !has("C_BUFFER") => "target",
        _ => "rank",
    }
}

/// Integers that are `MPI_Aint`, `MPI_Count` or `MPI_Offset` without the large-count variant, too.
fn always_64_bits(kind: &str) -> bool {
    matches!(
        kind,
        "ALLOC_MEM_NUM_BYTES"
            | "DISPLACEMENT"
            | "DISPLACEMENT_NNI"
            | "GENERIC_DTYPE_COUNT"
            | "LOCATION_SMALL"
            | "NUM_BYTES"
            | "OFFSET"
            | "POLYDISPLACEMENT_AINT_COUNT"
            | "POLYDISPOFFSET"
            | "POLYDTYPE_PACK_SIZE"
            | "POLYDTYPE_STRIDE_BYTES"
            | "POLYLOCATION"
            | "RMA_DISPLACEMENT_NNI"
            | "TOOLS_TICK_COUNT"
            | "WIN_ATTACH_SIZE"
            | "WINDOW_SIZE"
            | "XFER_NUM_ELEM"
            | "XFER_NUM_ELEM_NNI"
    )
}
