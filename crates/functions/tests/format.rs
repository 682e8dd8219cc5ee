//! The parser of the table, which the build runs: what it takes, and what it refuses where.

#[path = "../src/argument.rs"]
#[allow(dead_code, unreachable_pub, reason = "the parser needs a part of it")]
mod argument;
#[path = "../build/arguments.rs"]
#[allow(dead_code, unreachable_pub, reason = "the build has the rest")]
mod arguments;
#[path = "../src/group.rs"]
#[allow(dead_code, unreachable_pub, reason = "the parser needs a part of it")]
mod group;
#[path = "../src/operation.rs"]
#[allow(dead_code, unreachable_pub, reason = "the parser needs a part of it")]
mod operation;
#[path = "../build/parse.rs"]
#[allow(dead_code, unreachable_pub, reason = "the build has the rest")]
mod parse;
#[path = "../src/standard.rs"]
#[allow(dead_code, unreachable_pub, reason = "the parser needs a part of it")]
mod standard;

use argument::{Direction, Length, Role};
use arguments::{Width, length};
use group::Group;
use operation::Operation;
use parse::parse;
use standard::Standard;

#[test]
fn a_line_is_a_function() {
    let table = parse(
        "# comment\n\
         \n\
         MPI_Testall completion 3.1 - both polling count:length &array_of_requests[count]:request >flag:flag >s[*]:status\n\
         MPI_Type_x type 2.2-3.0 4.1 f90 - >size:bytes:64 disp:displacement:c64:atroot n:length:conly\n\
         ! MPI_DUP_FN\n",
    )
    .unwrap();
    assert_eq!(table.fortran_only, ["MPI_DUP_FN"]);
    let [test, x] = table.functions.as_slice() else { panic!("{table:?}") };
    assert_eq!(
        (test.name.as_str(), test.group, test.since, test.removed),
        ("MPI_Testall", Group::Completion, Standard::Mpi3_1, None)
    );
    assert_eq!(
        (test.large, test.f90, test.f08, test.polling, test.operation),
        (None, true, true, true, Operation::Blocking)
    );
    let roles: Vec<_> = test.arguments.iter().map(|a| (a.name.as_str(), a.role, a.direction)).collect();
    assert_eq!(
        roles,
        [
            ("count", Role::Length, Direction::In),
            ("array_of_requests", Role::Request, Direction::InOut),
            ("flag", Role::Flag, Direction::Out),
            ("s", Role::Status, Direction::Out),
        ]
    );
    let lengths: Vec<_> = test.arguments.iter().map(|argument| length(argument, &test.arguments)).collect();
    assert_eq!(lengths, [Length::Scalar, Length::Argument(0), Length::Scalar, Length::Implied]);
    assert_eq!((x.removed, x.large, x.f90, x.f08), (Some(Standard::Mpi3_0), Some(Standard::Mpi4_1), true, false));
    let attributes: Vec<_> = x.arguments.iter().map(|a| (a.width, a.root_only, a.large_only)).collect();
    assert_eq!(attributes, [(Width::Wide, false, false), (Width::Large, true, false), (Width::Int, false, true)]);
}

#[test]
fn flags_may_be_joined() {
    let table = parse("MPI_X p2p 3.1 - - polling,nonblocking").unwrap();
    assert!(table.functions[0].polling);
    assert_eq!(table.functions[0].operation, Operation::Nonblocking);
}

#[test]
fn errors_say_where_and_what() {
    for (text, expected) in [
        ("MPI_A\n", "1: the column `group` is missing"),
        ("\nMPI_A p2p 3.1 - both\n", "2: the column `flags` is missing"),
        ("Send p2p 3.1 - - -", "1: `Send` is not the name of an MPI function"),
        ("MPI_A\u{e9} p2p 3.1 - - -", "1: `MPI_A\u{e9}` is not the name of an MPI function"),
        ("MPI_B p2p 3.1 - - -\nMPI_A p2p 3.1 - - -", "2: MPI_A must stand before MPI_B, and once"),
        ("MPI_A p2p 3.1 - - -\nMPI_A p2p 3.1 - - -", "2: MPI_A must stand before MPI_A, and once"),
        ("! MPI_B\n! MPI_A", "2: MPI_A must stand before MPI_B, and once"),
        ("MPI_A p3p 3.1 - - -", "1: unknown group `p3p`"),
        ("MPI_A p2p 3.2 - - -", "1: unknown version of the standard `3.2`"),
        ("MPI_A p2p 3.1-3.0 - - -", "1: removed before it came"),
        ("MPI_A p2p 3.1 c - -", "1: unknown version of the standard `c`"),
        ("MPI_A p2p 3.1 - f77 -", "1: unknown Fortran binding `f77`"),
        ("MPI_A p2p 3.1 - - lazy", "1: unknown or repeated flag `lazy`"),
        ("MPI_A p2p 3.1 - - polling,polling", "1: unknown or repeated flag `polling`"),
        ("MPI_A p2p 3.1 - - persistent,nonblocking", "1: unknown or repeated flag `nonblocking`"),
        ("MPI_A p2p 3.1 - - - buf", "1: `buf`: an argument needs a role"),
        ("MPI_A p2p 3.1 - - - :buffer", "1: `:buffer`: an argument needs a name"),
        ("MPI_A p2p 3.1 - - - >>buf:buffer", "1: `>>buf:buffer`: an argument needs a name"),
        ("MPI_A p2p 3.1 - - - buf:puffer", "1: `buf:puffer`: unknown role `puffer`"),
        ("MPI_A p2p 3.1 - - - a[b:buffer", "1: `a[b:buffer`: `[` without `]`"),
        ("MPI_A p2p 3.1 - - - a[b]:request", "1: the length of a is `b`, which is no argument"),
        ("MPI_A p2p 3.1 - - - a:count:65", "1: `a:count:65`: unknown attribute `65`"),
        ("MPI_A p2p 3.1 4.0 - - a:count:64:c64", "1: `a:count:64:c64`: `c64` is one too many"),
        ("MPI_A p2p 3.1 - - - a:count:c64", "1: a is about a large-count variant, and there is none"),
        ("MPI_A p2p 3.1 - - - a:tag a:tag", "1: two arguments are called a"),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
    }
    let many = "MPI_A p2p 3.1 - - - a:tag b:tag c:tag d:tag e:tag f:tag g:tag h:tag i:tag j:tag k:tag l:tag m:tag n:tag o:tag p:tag";
    assert_eq!(parse(many).map(|table| table.functions.len()), Ok(1));
    assert_eq!(parse(&format!("{many} q:tag")).unwrap_err().to_string(), "1: more than 16 arguments");
}
