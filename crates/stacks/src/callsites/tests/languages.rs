//! What compilers of several languages write down.

use super::program::{Build, line_of};

const C: &str = "
void mark(void);
static int state;
static inline __attribute__((always_inline)) void exchange(int by) {
    state += by;
    mark(); /* here */
    state -= by;
}
__attribute__((noinline)) void step(int by) {
    exchange(by * 3); /* inlined here */
    state *= 2;
}
int main(int argc, char **argv) {
    (void)argv;
    step(argc);
    return state == 0;
}
";

#[test]
fn c_with_and_without_optimisation_at_fixed_and_at_random_addresses() {
    let (here, inlined) = (line_of(C, "/* here */"), line_of(C, "/* inlined here */"));
    for options in [&["-O0"][..], &["-O2"], &["-O2", "-no-pie"], &["-O2", "-static"], &["-O2", "-static-pie"]] {
        let site = Build::new("gcc", ("prog.c", C), &[&["-g"], options].concat()).call_site();
        assert_eq!(site.text, format!("prog.c:{here} in exchange, inlined into step"), "{options:?}");
        assert_eq!(site.inlined[0].line, Some(inlined));
        assert!(site.at.file.unwrap().ends_with("/prog.c"));
        assert!(site.module.starts_with("build-id:"), "{}", site.module);
    }
}

#[test]
fn a_return_address_behind_the_function_is_of_the_call() {
    let source = "
void mark(void);
__attribute__((noreturn)) void stop(void);
__attribute__((noinline)) void last(void) { mark(); __builtin_unreachable(); }
__attribute__((noinline)) void next(void) { __asm__ volatile(\"\"); }
int main(int argc, char **argv) { (void)argv; if (argc) last(); next(); return 0; }
";
    let build = Build::new("gcc", ("prog.c", source), &["-g", "-O2", "-fno-reorder-functions", "-falign-functions=1"]);
    assert_eq!(build.text(), "prog.c:4 in last");
}

#[test]
fn cxx_names_are_those_of_the_source() {
    let source = "
extern \"C\" void mark(void);
namespace physics {
template <typename T> struct Solver {
    T state = 1;
    __attribute__((noinline)) void step(int by) {
        mark();
        state += by;
    }
};
}
namespace MPI { inline void Send() { mark(); asm volatile(\"\"); } }
__attribute__((noinline)) void through_the_bindings() {
    MPI::Send(); // binding
    asm volatile(\"\");
}
int main(int argc, char **) {
#ifdef BINDING
    through_the_bindings();
#endif
    physics::Solver<double> solver;
    solver.step(argc);
    return solver.state > 0;
}
";
    let line = line_of(source, "        mark();");
    let build = Build::new("g++", ("prog.cpp", source), &["-g", "-O2"]);
    assert_eq!(build.text(), format!("prog.cpp:{line} in physics::Solver<double>::step"));
    build.run("strip", &["--strip-debug", "prog"]);
    let text = build.text();
    assert!(text.starts_with("physics::Solver<double>::step+0x") && text.ends_with(" in prog"), "{text}");
    let line = line_of(source, "// binding");
    let build = Build::new("g++", ("prog.cpp", source), &["-g", "-O2", "-DBINDING"]);
    assert_eq!(build.text(), format!("prog.cpp:{line} in through_the_bindings"));
}

const FORTRAN: &str = "
module solver
contains
  subroutine step(by)
    integer, intent(in) :: by
    if (by > 0) call mark() ! in a module
    print *, by
  end subroutine
end module
subroutine outside(by)
  integer, intent(in) :: by
  if (by > 0) call mark() ! outside
  print *, by
end subroutine
program ring
  use solver
  implicit none
  integer :: which
  which = WHICH
  if (which == 1) call step(1)
  if (which == 2) call outside(1)
  if (which == 3) call inside(1)
  if (which == 4) call mark() ! program
  print *, which
contains
  subroutine inside(by)
    integer, intent(in) :: by
    if (by > 0) call mark() ! contained
    print *, by
  end subroutine
end program
";

#[test]
fn fortran_names_are_those_of_the_source() {
    for (which, line, function, symbol) in [
        (1, "! in a module", "solver::step", "solver::step"),
        (2, "! outside", "outside", "outside_"),
        (3, "! contained", "inside", "inside"),
        (4, "! program", "ring", "MAIN__"),
    ] {
        let define = format!("-DWHICH={which}");
        for optimise in ["-O0", "-O2"] {
            let options = ["-g", optimise, "-fno-inline", &define];
            let build = Build::new("gfortran", ("prog.F90", FORTRAN), &options);
            assert_eq!(build.text(), format!("prog.F90:{} in {function}", line_of(FORTRAN, line)), "{optimise}");
            build.run("strip", &["--strip-debug", "prog"]);
            let text = build.text();
            assert!(text.starts_with(&format!("{symbol}+0x")) && text.ends_with(" in prog"), "{text}");
        }
    }
}
