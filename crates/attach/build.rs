//! Builds the BPF programs, which are embedded in the library.

fn main() -> Result<(), mpiprobe_bpf_build::BuildError> {
    let object = mpiprobe_bpf_build::build(&mpiprobe_bpf_build::Request::from_build_script()?)?;
    println!("cargo:rustc-env=MPIPROBE_BPF_OBJECT={}", object.display());
    Ok(())
}
