//! Real stacks of programs that have called MPI through a layer.

use std::os::unix::fs::FileExt as _;

use mpiprobe_tests::{Language, Mpi};

use super::{
    super::{AddressMap, Layer, Modules, Registers, Symboliser, layer_frame_at, unwind_out_of_layers},
    program::{Build, Waiting, line_of},
};

/// Takes the place of MPI's own function: says with what registers it was called, and waits.
const ENTRY: &str = r#"
    .globl MPI_Recv, PMPI_Recv
    .type MPI_Recv, @function
    .type PMPI_Recv, @function
MPI_Recv:
PMPI_Recv:
    lea registers(%rip), %rdi
    mov (%rsp), %rax
    mov %rax, 0(%rdi)
    lea 8(%rsp), %rax
    mov %rax, 8(%rdi)
    mov %rbx, 16(%rdi)
    mov %rbp, 24(%rdi)
    mov %r12, 32(%rdi)
    mov %r13, 40(%rdi)
    mov %r14, 48(%rdi)
    mov %r15, 56(%rdi)
    sub $8, %rsp
    call say_registers
    add $8, %rsp
    xor %eax, %eax
    ret
    .local registers
    .comm registers, 64, 8
    .section .note.GNU-stack,"",@progbits
"#;

/// Handles need no MPI either.
const SAY: &str = "
#include <stdio.h>
void say_registers(unsigned long *registers) {
    for (int i = 0; i < 8; i++) printf(\"%lx \", registers[i]);
    printf(\"\\n\");
    fflush(stdout);
    while (getchar() != EOF) {}
}
void *PMPI_Comm_f2c(int handle) { (void)handle; return 0; }
void *PMPI_Type_f2c(int handle) { (void)handle; return 0; }
";

/// What of the stack is copied, in bytes.
const STACK: usize = 4096;

struct Stopped {
    waiting: Waiting,
    registers: Registers,
    stack: Vec<u8>,
}

fn build(compiler: &str, source: (&str, &str), options: &[&str]) -> Build {
    let build = Build::new("gcc", ("say.c", SAY), &["-c", "-O1", "-fPIC"]);
    std::fs::write(build.path("entry.S"), ENTRY).unwrap();
    std::fs::write(build.path(source.0), source.1).unwrap();
    build.run("gcc", &["-c", "entry.S"]);
    build.run("mv", &["prog", "say.o"]);
    build.run(compiler, &[&[source.0, "entry.o", "say.o", "-g", "-o", "prog"], options].concat());
    build
}

fn stop(build: &Build) -> Stopped {
    let (mut waiting, line) = Waiting::start_and_read(&build.path("prog"));
    let mut numbers = line.split_whitespace().map(|number| u64::from_str_radix(number, 16).unwrap());
    waiting.return_address = numbers.next().unwrap();
    let sp = numbers.next().unwrap();
    let registers = Registers { sp, saved: std::array::from_fn(|_| numbers.next()) };
    let mut stack = vec![0; STACK];
    // The stack may end before.
    let read = waiting.process().memory().unwrap().read_at(&mut stack, sp).unwrap();
    stack.truncate(read);
    Stopped { waiting, registers, stack }
}

/// The text of the call site behind the layers, found in three ways that must agree.
fn user_site(stopped: &Stopped, expected: &[Option<Layer>]) -> (String, usize) {
    let mut modules = Modules::default();
    let mut map = AddressMap::of(&stopped.waiting.process(), &mut modules).unwrap();
    let Stopped { waiting, registers, stack } = stopped;
    let mut locate = |address| map.locate(address, None, &mut modules);
    let layer = locate(waiting.return_address).layer();
    assert!(expected.contains(&layer), "{layer:?}");
    let frame = unwind_out_of_layers(&mut locate, waiting.return_address, *registers, stack).unwrap();
    assert_eq!(frame.at.layer(), None);
    // As the kernel does it: a word or two for each layer.
    let (mut address, mut sp, mut fp, mut layers) = (waiting.return_address, registers.sp, registers.saved[1], 0);
    let word = |address: u64| {
        let within = usize::try_from(address - registers.sp).ok()?;
        Some(u64::from_le_bytes(stack.get(within..within + 8)?.try_into().unwrap()))
    };
    while locate(address).layer().is_some() {
        let caller = layer_frame_at(&locate(address)).unwrap().caller(sp, fp, word).unwrap();
        (address, sp, fp) = (caller.return_address, caller.stack_pointer, caller.frame_pointer);
        layers += 1;
    }
    assert_eq!((address, sp), (frame.return_address, frame.registers.sp));
    assert!(fp.is_none() || fp == frame.registers.saved[1]);
    if layer.is_some() {
        let missing = &stack[..usize::try_from(frame.registers.sp - registers.sp - 8).unwrap()];
        assert_eq!(unwind_out_of_layers(&mut locate, waiting.return_address, *registers, missing), None);
    }
    (Symboliser::default().resolve(&frame.at).text.clone(), layers)
}

const USE_MPI: &str = "
module halo
  use mpi
contains
  subroutine exchange(token)
    integer, intent(inout) :: token
    integer :: status(MPI_STATUS_SIZE), ierror
    call MPI_Recv(token, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, status, ierror) ! here
    token = token + 1
  end subroutine
end module
program ring
  use halo
  integer :: token
  call exchange(token)
  print *, token
end program
";

/// Invariant USERS-SITES.
#[test]
fn fortran_calls_are_charged_to_the_program() {
    let f08 = USE_MPI.replace("use mpi", "use mpi_f08");
    let f08 =
        f08.replace("integer :: status(MPI_STATUS_SIZE), ierror", "type(MPI_Status) :: status; integer :: ierror");
    for mpi in Mpi::ALL {
        let compiler = mpi.compiler(Language::Fortran).unwrap();
        for (source, least) in [(USE_MPI, 1), (&f08, 2)] {
            for optimise in ["-O0", "-O2"] {
                let stopped = stop(&build(&compiler, ("prog.f90", source), &[optimise, "-fno-inline"]));
                let (text, layers) = user_site(&stopped, &[Some(Layer::Fortran)]);
                assert_eq!(text, format!("prog.f90:{} in halo::exchange", line_of(source, "! here")), "{mpi}");
                assert_eq!(layers, least, "{mpi} {optimise}");
            }
        }
    }
}

/// There, the layer is part of the program.
#[test]
fn fortran_calls_of_a_statically_linked_program_are_charged_to_it() {
    let f08 = USE_MPI.replace("use mpi", "use mpi_f08");
    let f08 =
        f08.replace("integer :: status(MPI_STATUS_SIZE), ierror", "type(MPI_Status) :: status; integer :: ierror");
    let compiler = Mpi::Mpich.compiler(Language::Fortran).unwrap();
    for source in [USE_MPI, &f08] {
        let stopped = stop(&build(&compiler, ("prog.f90", source), &["-O2", "-fno-inline", "-l:libmpichfort.a"]));
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", stopped.waiting.process().pid())).unwrap();
        assert!(!maps.contains("libmpichfort"));
        let (text, _) = user_site(&stopped, &[Some(Layer::Fortran)]);
        assert_eq!(text, format!("prog.f90:{} in halo::exchange", line_of(source, "! here")));
    }
}

#[test]
fn calls_through_cxx_bindings_are_charged_to_the_program() {
    let source = "
#include <mpi.h>
__attribute__((noinline)) int exchange(MPI::Intracomm &communicator) {
    int token = 0;
    communicator.Recv(&token, 1, MPI::INT, 0, 1); // here
    return token + 1;
}
int main() { return exchange(MPI::COMM_WORLD); }
";
    for mpi in Mpi::ALL {
        let compiler = mpi.compiler(Language::Cxx).unwrap();
        for optimise in ["-O0", "-O2"] {
            let options = [optimise, "-Wno-cast-function-type"];
            let stopped = stop(&build(&compiler, ("prog.cpp", source), &options));
            // Optimised, the binding may be inlined.
            let (text, _) =
                user_site(&stopped, if optimise == "-O0" { &[Some(Layer::Cxx)] } else { &[Some(Layer::Cxx), None] });
            assert_eq!(text, format!("prog.cpp:{} in exchange", line_of(source, "// here")), "{mpi} {optimise}");
        }
    }
}

#[test]
fn calls_without_a_layer_stay_what_they_are() {
    let source = "int MPI_Recv(void); int main(void) { return MPI_Recv() + 1; }";
    let stopped = stop(&build("gcc", ("prog.c", source), &["-O2"]));
    assert_eq!(user_site(&stopped, &[None]).0, "prog.c:1 in main");
}
